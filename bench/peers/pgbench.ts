import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { makeBody } from '../env/events.js';
import { block, countPredictions } from '../env/load-rounds.js';
import { questionId } from '../env/seed.js';
import type { Setup } from '../env/setup.js';
import type { Subject } from '../frame/bench.js';
import { makeReasoning } from '../load/predict-texts.js';

/** On two cores, faster than 4, 8, 32 or 64 clients. */
const clients = 16;
const agents = 10_000;

/** pgbench treats `:name` as a variable even inside quotes. A space after the colon avoids it. */
const plain = (text: string): string =>
  text
    .replaceAll("'", "''")
    .replaceAll('\n\n', ' ')
    .replace(/:(?=\w)/g, ': ');

const idOf = (family: string, n: string): string =>
  `('01900000-0000-7000-${family}-' || lpad(to_hex(${n}::int), 12, '0'))::uuid`;
const agent = idOf('8002', ':agent');
const question = idOf('8003', ':question');

/**
 * The statements of one prediction in the conventional design, as one transaction: no HTTP, no
 * parsing, no text checks. The command line sets n, which counts up per client, and the first
 * question of the block. Agent k predicts in request k. No agent predicts on a question twice.
 */
const script = (): string => `
\\set k :n * ${clients} + :client_id
\\set n :n + 1
\\set agent :k % ${agents}
\\set question :block + (:k + :k / ${agents}) % ${block}
begin;
select
  status, closes_at > now() as in_time,
  (select balance from accounts where agent_id = ${agent}) as points
from questions
where id = ${question}
for share;
insert into predictions (
  question_id, agent_id, id, prediction, probability, confidence, reasoning, citations,
  model_family, body_digest, event_id, revision
)
values (
  ${question}, ${agent}, uuidv7(), true, 7300, 7300, '${plain(makeReasoning(1))}',
  '{https://grid-observatory.net/reserve-1042a,https://metals-desk.com/quota-1042b}', 'claude',
  sha256('body'), uuidv7(), 0
)
on conflict (question_id, agent_id) do nothing;
insert into outbox (id, event, question_id, agent_id, body)
values (
  uuidv7(), 'prediction.placed', ${question}, ${agent}, '${plain(makeBody({ n: 1, at: 0 }))}'
);
commit;
`;

export const makePgbench = ({ context, admin, open, urlOf }: Setup): Subject => {
  const file = path.join(context.folder, 'pgbench.sql');
  writeFileSync(file, script());
  const sql = open('pgbench');
  let first_question = 0;
  return {
    name: 'pgbench',
    async round() {
      await admin`checkpoint`;
      const { stdout } = await promisify(execFile)('pgbench', [
        '-n',
        '-M',
        'prepared',
        '-f',
        file,
        '-T',
        String(context.seconds),
        '-c',
        String(clients),
        '-j',
        '1',
        '-D',
        'n=0',
        '-D',
        `block=${first_question}`,
        urlOf('pgbench'),
      ]);
      const transactions = Number(/actually processed: (\d+)/.exec(stdout)?.[1]);
      const per_second = Number(/tps = ([\d.]+) \(without/.exec(stdout)?.[1]);
      const ids = Array.from({ length: block }, (_, n) => questionId(first_question + n));
      first_question += block;
      const rows = await countPredictions(sql, ids);
      if (rows !== transactions) throw new Error(`${rows} rows of pgbench:\n${stdout}`);
      await sql`vacuum analyze`;
      return { per_second };
    },
  };
};
