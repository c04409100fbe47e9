import { questionId } from '../../../bench/env/seed.js';
import { createSnapshotTaker } from '../../../src/features/consensus/index.js';
import { startApp } from '../../help/app.js';
import { recomputeConsensus } from '../../help/consensus-oracle.js';
import { openParts } from '../../help/parts.js';
import { t } from '../../help/tap.js';
import { addPredictions, addQuestions, options } from './world.js';

/** The consensus figures that lists of questions include. */

const hour_ms = 3_600_000;
const app = await startApp(t, { roles: ['api'] });
const { sql } = app;
const { deps, advance } = await openParts(t, { stores: app.stores });
await addQuestions(sql, { count: 2 });
await addQuestions(sql, { count: 1, first: 2, options });
const taker = createSnapshotTaker(deps);

type Figures = { forecast: number; options?: { option: string; forecast: number }[] };
/** The figures of both questions, recorded every six hours over the last ten days. */
const history: { at: number; binary: number | null; multi: Figures }[] = [];
const hours = 240;
advance(-hours * hour_ms);
for (let hour = 0; hour < hours; hour += 6) {
  const one = { agent: hour, family: 'gpt', owner: hour, at: deps.clock() };
  await addPredictions(sql, [
    { ...one, question: 0, value: (hour * 37) % 100 },
    {
      ...one,
      question: 2,
      option: 0,
      value: 0,
      percents: hour < 200 ? [50, 30, 20] : [40, 35, 25],
    },
  ]);
  await taker.turn();
  const found = await recomputeConsensus(sql);
  const [binary, multi] = [0, 2].map((n) => found.get(questionId(n)) as Figures);
  history.push({ at: deps.clock().getTime(), binary: binary?.forecast ?? null, multi: multi! });
  advance(6 * hour_ms);
}

interface Listed {
  readonly id: string;
  readonly consensus?: Readonly<Record<string, number>>;
  readonly trend?: readonly { readonly at: string; readonly forecast: number }[];
}

const list = async (query: string) => {
  const { status, body } = await app.call('GET', `/api/questions?${query}`);
  t.equal(status, 200, query);
  return new Map<string, Listed>(body.questions.map((one: Listed) => [one.id, one]));
};
const round2 = (value: number): number => Math.round(100 * value) / 100;
const before = (hours_ago: number) =>
  history.findLast(({ at }) => at <= Date.now() - hours_ago * hour_ms) ?? history[0]!;

t.test('the headline, how it changed in a day and a week, and its trend', async (t) => {
  const ids = [0, 1, 2].map(questionId).join(',');
  const found = await list(`ids=${ids}&include=consensus,trend`);
  const now = history.at(-1)!;
  const binary = found.get(questionId(0))!;
  t.same(binary.consensus, {
    forecast: now.binary,
    leading_option: null,
    change_24h: round2((now.binary ?? 0) - (before(24).binary ?? 0)),
    change_7d: round2((now.binary ?? 0) - (before(168).binary ?? 0)),
  });
  const { trend = [] } = binary;
  t.equal(trend.length, 30);
  t.same(trend[0], { at: new Date(history[0]!.at).toISOString(), forecast: history[0]!.binary });
  t.equal(trend.at(-1)?.forecast, now.binary);
  const stood = new Map(
    history.map(({ at, binary: forecast }) => [new Date(at).toISOString(), forecast]),
  );
  for (const { at, forecast } of trend) t.equal(forecast, stood.get(at), at);

  const multi = found.get(questionId(2))!;
  t.equal(multi.consensus?.['leading_option'], 'Rises');
  const rises = ({ multi: { options: all = [] } }: { multi: Figures }) => all[0]?.forecast ?? 0;
  t.match(multi.consensus, {
    forecast: rises(now),
    change_24h: round2(rises(now) - rises(before(24))),
  });
  t.ok((multi.consensus?.['change_24h'] ?? 0) < 0);
  const none = { forecast: null, leading_option: null, change_24h: null, change_7d: null };
  t.match(found.get(questionId(1)), { consensus: none, trend: [] });
});

t.test('only what is asked for is included', async (t) => {
  const only = (await list('include=consensus')).get(questionId(0))!;
  t.same([typeof only.consensus, only.trend], ['object', undefined]);
  t.same((await list('')).get(questionId(0))!.consensus, undefined);
  t.equal((await app.call('GET', '/api/questions?include=all')).status, 400);
});
