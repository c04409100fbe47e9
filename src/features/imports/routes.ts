import { type Static, type TSchema, Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { reply, routeFor } from '../../http/route.js';
import { compileCheck } from '../../http/validation.js';
import {
  common_faults,
  type Fault,
  isFault,
  refuse,
  refusedItem,
  unreadableItem,
} from '../../kit/fault.js';
import { makePause } from '../../kit/loop.js';
import { adminName } from '../audit/index.js';
import type { PredictionParts, ReviseParts } from '../predictions/index.js';
import { checkDraft, createQuestion } from '../questions/index.js';
import { question_draft } from '../questions/schema.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { importAgent, importForecasts, importResolution } from './items.js';
import * as wire from './schema.js';
import { findExported } from './store.js';

/**
 * Imports the parts of a season: questions, agents, forecasts and outcomes. A call has up to 100
 * items, and each item has its own result. An item that exists already is left as it is.
 */

type Needs = Deps & PredictionParts & ReviseParts & TaxonomyParts;
const route = routeFor<Needs>();

type Outcome = { readonly kind: 'created' | 'exists' } | Fault;

interface Call {
  readonly admin: string;
  /** Aborted when the client has disconnected. */
  readonly gone: AbortSignal;
}

/**
 * Processes the items in order. Returns the outcome of each, or of fewer if the client has
 * disconnected.
 */
type Work<T> = (deps: Needs, items: readonly T[], call: Call) => Promise<readonly Outcome[]>;

interface Import<S extends TSchema> {
  readonly id: string;
  readonly tag?: string;
  readonly path: string;
  readonly summary: string;
  readonly item: S;
  /** Members of the result of an item, in addition to its status. */
  readonly members: Readonly<Record<string, TSchema>>;
  readonly work: Work<Static<S>>;
}

const resultOf = (outcome: Outcome, index: number) => {
  if (isFault(outcome)) return { index, status: 'refused', ...refusedItem(outcome) };
  const { kind: status, ...named } = outcome;
  return { index, status, ...named };
};

/** Items to check in one turn of the event loop. 100 items may have 4 MB of text. */
const items_a_turn = 10;

/**
 * Makes a route for an import. Items that cannot be read are refused one by one; `work` gets all
 * other items.
 */
const importRoute = <S extends TSchema>({ item, members, work, ...named }: Import<S>) => {
  const check = compileCheck(item, 'item');
  const results = Type.Array(Type.Object({ ...wire.result_members, ...members }));
  return route({
    tag: 'import',
    method: 'POST',
    auth: 'admin',
    ...named,
    body: wire.items_body,
    body_limit: 4 * 1024 * 1024,
    returns: { 200: Type.Object({ results }) },
    handle: async (ctx, deps) => {
      const { items } = ctx.body;
      const gone = new AbortController();
      ctx.onGone(() => gone.abort());
      const wrong: ReturnType<typeof check>[] = [];
      const pause = makePause(items_a_turn);
      for (const one of items) {
        wrong.push(check(one));
        await pause();
      }
      const good = items.filter((_, index) => wrong[index] === null) as Static<S>[];
      const admin = adminName(ctx.caller);
      const done = await work(deps, good, { admin, gone: gone.signal });
      // A repeated call finds the finished items and does the rest, so this answer is not stored.
      if (done.length < good.length) return refuse(common_faults.UNAVAILABLE);
      const outcomes = done.values();
      return reply(200, {
        results: wrong.map((fields, index) =>
          resultOf(fields === null ? outcomes.next().value! : unreadableItem(fields), index),
        ),
      });
    },
  });
};

const eachInTurn =
  <T>(work: (deps: Needs, item: T, admin: string) => Promise<Outcome>): Work<T> =>
  async (deps, items, { admin, gone }) => {
    const outcomes: Outcome[] = [];
    for (const item of items) {
      if (gone.aborted) break;
      outcomes.push(await work(deps, item, admin));
    }
    return outcomes;
  };

const importQuestions = importRoute({
  id: 'importQuestions',
  tag: 'questions',
  path: '/api/admin/questions/import',
  summary: 'Create up to 100 questions, each with its own result; existing ones stay unchanged',
  item: question_draft,
  members: wire.question_members,
  work: eachInTurn(async (deps, item, admin) => {
    const known = await findExported(deps.sql, item);
    if (known !== undefined) return { kind: 'exists', question_id: known.id };
    const question = await checkDraft(deps, item);
    if (isFault(question)) return question;
    const how = { admin, act: 'question.import', publish: item.publish, at: deps.clock() } as const;
    const { row, created } = await deps.sql.begin((tx) => createQuestion(tx, question, how));
    return { kind: created ? 'created' : 'exists', question_id: row.id };
  }),
});

const importAgents = importRoute({
  id: 'importAgents',
  path: '/api/admin/agents/import',
  summary: 'Register up to 100 agents for imported forecasts, linked to the owner of imports',
  item: wire.agent_item,
  members: wire.agent_members,
  work: eachInTurn(importAgent),
});

const importPredictions = importRoute({
  id: 'importPredictions',
  path: '/api/admin/predictions/import',
  summary: 'Record up to 100 forecasts of imported agents on imported, undecided questions',
  item: wire.forecast_item,
  members: wire.prediction_members,
  work: (deps, items, { admin }) => importForecasts(deps, items, admin),
});

const importResolutions = importRoute({
  id: 'importResolutions',
  path: '/api/admin/resolutions/import',
  summary: 'Resolve or void up to 100 imported questions; decided ones stay unchanged',
  item: wire.resolution_item,
  members: wire.question_members,
  work: eachInTurn(importResolution),
});

export const routes = [importQuestions, importAgents, importPredictions, importResolutions];
