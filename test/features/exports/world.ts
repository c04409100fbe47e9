import { createHash } from 'node:crypto';
import type { TestApp } from '../../help/app.js';
import { type Agent, makeReasoning } from '../../help/story.js';

/** Shared code for tests of exports. */

export type Row = Record<string, unknown>;

export const sha256 = (bytes: Uint8Array): string =>
  createHash('sha256').update(bytes).digest('hex');

/** Texts that break careless writers or readers of tables. */
export const hostile_texts = [
  '=HYPERLINK("https://evil.example","win")',
  '+1+1',
  '-2+3',
  '@SUM(A1:A9)',
  '\tbegins with a tab',
  'a "quoted" text, with commas; \'and\' more',
  'first line\nsecond line\r\nthird \u2028 line',
  'letters beyond: Größe 漢字 📈👩‍🔬 \u0007 \\ \\n',
];

export const predict = async (
  app: TestApp,
  ask: { readonly question_id: string; readonly agent: Agent; readonly body: object },
): Promise<string> => {
  const answer = await app.call('POST', `/api/questions/${ask.question_id}/predict`, {
    key: ask.agent.key,
    body: { reasoning: makeReasoning(), ...ask.body },
  });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body.prediction.id;
};

/** Stores a text directly, because the gates would clean it up. */
export const putHostile = (app: TestApp, id: string, text: string): Promise<unknown> =>
  app.sql`
    update predictions
    set
      reasoning = ${`${text} ${'and so on '.repeat(20)}`},
      prior_basis = ${text},
      citations = array[${text}, 'https://b.example']
    where id = ${id}`;

export const readLines = (text: string): Row[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

export const fetchBytes = async (url: string, headers: Record<string, string> = {}) => {
  const answer = await fetch(url, { headers });
  return { answer, bytes: Buffer.from(await answer.arrayBuffer()) };
};
