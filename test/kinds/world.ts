import type { Answered, TestApp } from '../help/app.js';
import { type Agent, makeReasoning } from '../help/story.js';
import { until } from '../help/until.js';

/** Shared code of this folder's tests: forecasts in any form, and rows that are sent back. */

export type Fields = Readonly<Record<string, unknown>>;

// biome-ignore lint/suspicious/noExplicitAny: an answer is read by tests that know its shape.
export type Any = any;

export const reason = 'The operator published its timetable this morning, earlier than expected.';

/** The members that state a forecast, without its agent and its time. */
export const stated_names = [
  'prediction',
  'probability',
  'confidence',
  'selected_option',
  'probabilities',
  'cdf',
  'quartiles',
  'scale',
] as const;

export const statedOf = (row: Any): Fields =>
  Object.fromEntries(stated_names.map((name) => [name, row?.[name] ?? null]));

export const place = (app: TestApp, agent: Agent, id: string, stated: Fields): Promise<Answered> =>
  app.call('POST', `/api/questions/${id}/predict`, {
    key: agent.key,
    body: { ...stated, reasoning: makeReasoning() },
  });

export const placeOrThrow = async (
  app: TestApp,
  agent: Agent,
  id: string,
  stated: Fields,
): Promise<Any> => {
  const { status, body } = await place(app, agent, id, stated);
  if (status !== 201) throw new Error(`not placed: ${status} ${JSON.stringify(body)}`);
  return body.prediction;
};

export const revise = (app: TestApp, agent: Agent, pid: string, stated: Fields) =>
  app.call('PATCH', `/api/predictions/${pid}`, { key: agent.key, body: { ...stated, reason } });

/** Makes a prediction's latest forecast more than a minute old. */
export const age = async ({ sql }: Pick<TestApp, 'sql'>, pid: string): Promise<void> => {
  await sql`
    update predictions
    set created_at = created_at - interval '61 s', revised_at = revised_at - interval '61 s'
    where id = ${pid}`;
};

/** Predictions on a question, keyed by the agent's name. */
export const byAgent = async (app: TestApp, id: string): Promise<ReadonlyMap<string, Any>> => {
  const { body } = await app.call('GET', `/api/questions/${id}/predictions?limit=100`);
  return new Map(body.predictions.map((one: Any) => [one.user_name, one]));
};

let imported = 0;

/** An imported question that has been open for ten days. */
export const importQuestion = async (app: TestApp, fields: Fields = {}) => {
  imported += 1;
  const known = { source: 'mirror', source_id: `m-${imported}` };
  const day = (n: number): string => new Date(Date.now() + n * 86_400_000).toISOString();
  const item = {
    ...known,
    question: `Will mirrored station number ${imported} report before the end of the season?`,
    category: 'society',
    subcategory: 'benefits_public_good',
    opens_at: day(-10),
    closes_at: day(30),
    publish: true,
    ...fields,
  };
  const { body } = await app.call('POST', '/api/admin/questions/import', {
    admin: true,
    body: { items: [item] },
  });
  if (body.results?.[0]?.status !== 'created') throw new Error(JSON.stringify(body));
  const { source, source_id } = known;
  const path = `/api/questions?status=all&source=${source}&source_id=${source_id}`;
  const { questions } = (await app.call('GET', path)).body;
  return { ...known, id: questions[0].id as string };
};

/** A day ago, when the imported questions were already open. */
export const yesterday = (): string => new Date(Date.now() - 86_400_000).toISOString();

/** Waits until an event about a question is in the log, and returns it. */
export const eventOf = (app: TestApp, event: string, question_id: string): Promise<Any> =>
  until(`${event} in the log`, async () => {
    const path = `/api/events?topic=question:${question_id}&events=${event}&limit=100`;
    const { events } = (await app.call('GET', path)).body;
    return events.at(-1);
  });

export const consensusOf = (app: TestApp, id: string, least: number): Promise<Any> =>
  until(`a consensus of ${least}`, async () => {
    const { body } = await app.call('GET', `/api/questions/${id}/consensus`);
    const consensus = body.consensus ?? body;
    return consensus.total_predictions >= least && consensus;
  });

const cell = (value: unknown): string => {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** CSV as a spreadsheet saves it. */
export const csvOf = (rows: readonly Fields[]): string => {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = [names, ...rows.map((row) => names.map((name) => row[name]))];
  return lines.map((line) => `${line.map(cell).join(',')}\r\n`).join('');
};

/** The values of every member of this name, at any depth. */
export const findMembers = (value: unknown, name: string): Any[] => {
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, one]) => [
    ...(key === name && one !== null ? [one] : []),
    ...findMembers(one, name),
  ]);
};
