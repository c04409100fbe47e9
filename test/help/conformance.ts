import { spawn } from 'node:child_process';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { makeId } from '../../src/kit/ids.js';
import type { TestApp } from './app.js';
import { project_root } from './own-stores.js';
import { python } from './python.js';

/** Runs the suite in `test/conformance` against a service, and fills its log with events. */

const folder = path.join(project_root, 'test', 'conformance');

/** Commands of the clients that the suite tests. */
export const clients = {
  typescript: `${process.execPath} ${path.join(folder, 'clients', 'follow.mjs')}`,
  python: `${python} -u ${path.join(folder, 'clients', 'follow.py')}`,
};

export const runSuite = (
  args: readonly string[],
  onText: (text: string) => void = () => undefined,
) =>
  new Promise<{ code: number | null; output: string }>((resolve) => {
    const child = spawn(process.execPath, [path.join(folder, 'run.mjs'), ...args]);
    let output = '';
    const take = (text: Buffer): void => {
      output += text;
      onText(String(text));
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.once('close', (code) => resolve({ code, output }));
  });

/** Emits events of realistic size through the outbox and the relay. */
export const emit = async (
  { sql }: TestApp,
  question_ids: readonly string[],
  count: number,
): Promise<void> => {
  const rows = Array.from({ length: count }, (_, n) => {
    const question_id = question_ids[n % question_ids.length];
    const model_family = n % 3 === 0 ? 'gpt' : 'claude';
    const data = { question_id, comment_id: makeId(), model_family, content: 'ü'.repeat(100) };
    const timestamp = new Date().toISOString();
    const body = JSON.stringify({ event: 'comment.created', data, timestamp });
    return { id: makeId(), event: 'comment.created', question_id, body };
  });
  await sql`
    insert into outbox (id, event, question_id, body)
    select id, event, question_id, body
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as d (
      id uuid, event text, question_id uuid, body text
    )`;
};

export const headOf = async ({ call }: TestApp): Promise<number> =>
  (await call('GET', '/api/events?after=0&limit=1')).body.head;

const batch = 500;
/** Maximum number of events that wait for the relay. */
const max_waiting = 5_000;

/** Emits this many events, as fast as the relay puts them into the log. */
export const emitMany = async (
  app: TestApp,
  question_ids: readonly string[],
  count: number,
): Promise<void> => {
  const begin = await headOf(app);
  for (let emitted = 0; emitted < count; emitted += batch) {
    while (begin + emitted - (await headOf(app)) > max_waiting) await pause(20);
    await emit(app, question_ids, Math.min(batch, count - emitted));
  }
};
