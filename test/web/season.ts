import type { Test } from 'tap';
import { type Answered, startApp, type TestApp } from '../help/app.js';
import { act, predict, settleEagerly } from '../help/settling.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { until } from '../help/until.js';

/** A forum whose pages have content: three agents, twelve resolved questions, four open. */

/** Used in names and texts. Pages must show it as plain text. */
export const hostile = '<img src=x onerror=alert(1)>&"\'';

const chances = [10, 90, 80, 30, 90, 10, 20, 65, 80, 70, 60, 40];
const happened = [0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0].map(Boolean);

export const openForum = async (t: Test) => {
  const app = await startApp(t, {
    roles: ['api', 'relay', 'timer'],
    env: { LIMIT_EXPORTS: '1000' },
  });
  return { app, show: showOf(app) };
};

/** Requests a page as a browser does. */
const showOf =
  (app: TestApp) =>
  (path: string): Promise<Answered> =>
    app.call('GET', path, { headers: { accept: 'text/html', 'cache-control': 'no-cache' } });

/** Reads the page until this text has disappeared from it, because a page may be a second old. */
export const showWithout = (show: ReturnType<typeof showOf>, path: string, text: string) =>
  until(`${path} is renewed`, async () => {
    const { body } = await show(path);
    return textOf(body).includes(text) ? null : (body as string);
  });

export interface Season {
  readonly good: Agent;
  readonly even: Agent;
  readonly poor: Agent;
  readonly open: readonly string[];
  readonly resolved: readonly string[];
}

export const playSeason = async (t: Test, app: TestApp): Promise<Season> => {
  await settleEagerly(t, app);
  const human = await makeHuman(app);
  const agents = {
    good: await makeAgent(app, {
      human,
      name: `Good ${hostile}`.slice(0, 50),
      model: 'claude-sonnet-4',
    }),
    even: await makeAgent(app, { human, model: 'gpt-5' }),
    poor: await makeAgent(app, { human, model: 'gemini-2.5-pro' }),
  };
  const ask = async (chance: number, category: string): Promise<string> => {
    const id = await makeOpenQuestion(app, { category, subcategory: null });
    await predict(app, agents.good, id, { probability: chance });
    await predict(app, agents.even, id, { probability: 50 });
    await predict(app, agents.poor, id, { probability: 100 - chance });
    return id;
  };
  const resolved: string[] = [];
  for (const [n, chance] of chances.entries()) {
    resolved.push(await ask(chance, n < 4 ? 'technology' : 'society'));
  }
  const open: string[] = [];
  for (const chance of [10, 60, 70, 90]) open.push(await ask(chance, 'technology'));
  for (const [n, id] of resolved.entries()) {
    await act(app, id, 'close');
    const decision = {
      outcome: happened[n],
      resolution_note: 'It was counted.',
      evidence_urls: [],
    };
    await act(app, id, 'resolve', decision);
  }
  await until('the boards have all agents and what they are compared with', async () => {
    const { body } = await app.call('GET', '/api/leaderboard?by=brier');
    return body.total === 5 && body.leaderboard.every(({ n }: { n: number }) => n === 12);
  });
  await until('the boards have the families', async () => {
    const { body } = await app.call('GET', '/api/leaderboard?by=brier&of=families');
    return body.total === 5 && body.leaderboard.every(({ n }: { n: number }) => n === 12);
  });
  return { ...agents, open, resolved };
};

/** Visible text of a part of a page, with whitespace collapsed. */
export const textOf = (html: string): string =>
  html
    .replace(/<(script|style)\b.*?<\/\1>/gs, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');

/** The text of each row of a table's body. */
export const rowsOf = (html: string): readonly string[] =>
  [...html.matchAll(/<tr\b[^>]*>(.*?)<\/tr>/gs)]
    .map(([, row = '']) => row)
    .filter((row) => row.includes('<td'))
    .map((row) => textOf(row).trim());
