import type { Deps } from '../../http/deps.js';
import { reply, routeFor } from '../../http/route.js';
import { type Fault, isFault, refuse, refuseFields } from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import { findAgent } from '../accounts/index.js';
import { agents_faults } from '../accounts/schema.js';
import type { ConsensusParts } from '../consensus/index.js';
import { statedBy } from '../consensus/reading.js';
import { calibrationOf } from '../leaderboards/index.js';
import { brier_convention } from '../points/score-rules.js';
import { lists_tag } from '../questions/schema.js';
import { model_families } from '../taxonomy/model-family.js';
import {
  type Chances,
  findDifferences,
  meanBrier,
  meanDifference,
  type OpenQuestion,
  winRate,
} from './rules.js';
import { type Comparison, comparison_query, comparison_schema } from './schema.js';
import * as store from './store.js';

/** Compares two forecasters, each of which is an agent or a model family. */

type Needs = Deps & ConsensusParts;
type Named = store.Side & { readonly name: string; readonly model_family: string };

const isFamily = (id: string): boolean => (model_families as readonly string[]).includes(id);

const findSide = async ({ reads }: Deps, given: string): Promise<Named | Fault> => {
  const id = given.toLowerCase();
  if (isFamily(id)) return { kind: 'family', id, name: id, model_family: id };
  const agent = isId(id) ? await findAgent(reads, id) : undefined;
  if (agent !== undefined) {
    return { kind: 'agent', id, name: agent.name, model_family: agent.model_family };
  }
  const message = `No agent has this id and no model family has this name: "${given}".`;
  return refuse(agents_faults.AGENT_NOT_FOUND, { message });
};

const readChances = async (
  deps: Needs,
  { kind, id }: Named,
  questions: readonly OpenQuestion[],
): Promise<Chances> => {
  if (kind === 'agent') return store.readChances(deps.reads, id, questions);
  const ids = questions.map((one) => one.id);
  const found = await deps.consensus.findAll(ids, null);
  return new Map(
    found.flatMap((one) => {
      const stated = statedBy(one, id);
      return stated === null ? [] : [[one.question_id, stated] as const];
    }),
  );
};

const readOpen = async (deps: Needs, sides: readonly [Named, Named]) => {
  const questions = await store.listOpen(deps.reads, sides);
  const [a, b] = await Promise.all([
    readChances(deps, sides[0], questions),
    readChances(deps, sides[1], questions),
  ]);
  return findDifferences(questions, { a, b });
};

const showSide = ({ kind, id, name, model_family }: Named, bins: readonly store.BinRow[]) => {
  const total = (member: 'n' | 'sum' | 'squares') =>
    bins.reduce((sum, one) => sum + one[member], 0);
  const brier = meanBrier({ n: total('n'), sum: total('sum'), squares: total('squares') });
  return { kind, id, name, model_family, brier, calibration: calibrationOf(bins) };
};

const readComparison = async (deps: Needs, sides: readonly [Named, Named]): Promise<Comparison> => {
  const [totals, bins, listed, open] = await Promise.all([
    store.readTotals(deps.reads, sides),
    store.readBins(deps.reads, sides),
    store.listResolved(deps.reads, sides),
    readOpen(deps, sides),
  ]);
  const { n, wins, ties } = totals;
  const binsOf = (side: 'a' | 'b') => bins.filter((one) => one.side === side);
  return {
    a: showSide(sides[0], binsOf('a')),
    b: showSide(sides[1], binsOf('b')),
    resolved: {
      n,
      wins,
      ties,
      losses: n - wins - ties,
      win_rate: winRate(totals),
      brier_difference: meanDifference(totals),
      largest: listed.map(({ a_forecast, a_brier, b_forecast, b_brier, resolved_at, ...row }) => ({
        ...row,
        resolved_at: resolved_at.toISOString(),
        a: { forecast: a_forecast, brier: a_brier },
        b: { forecast: b_forecast, brier: b_brier },
      })),
    },
    open: { n: open.length, largest: open.slice(0, store.max_listed) },
    brier_convention,
  };
};

const compare = routeFor<Needs>()({
  id: 'compareForecasters',
  method: 'GET',
  path: '/api/compare',
  summary: 'Two agents or model families on the questions that both forecast',
  tag: 'leaderboards',
  auth: 'public',
  query: comparison_query,
  returns: { 200: comparison_schema },
  faults: [agents_faults.AGENT_NOT_FOUND],
  cacheable: true,
  cache: { tag: () => lists_tag },
  handle: async ({ query }, deps) => {
    const [a, b] = await Promise.all([findSide(deps, query.a), findSide(deps, query.b)]);
    if (isFault(a)) return a;
    if (isFault(b)) return b;
    if (a.id === b.id) {
      const message = 'Choose two different forecasters.';
      return refuseFields([{ path: 'query.b', message }], message);
    }
    return reply(200, await readComparison(deps, [a, b]));
  },
});

export const routes = [compare];
