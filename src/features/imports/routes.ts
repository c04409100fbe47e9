import type { TSchema } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { type Fault, isFault, refusedItem, unreadableItem } from '../../kit/fault.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { compileCheck } from '../../kit/http/validation.js';
import { adminName } from '../audit/index.js';
import type { PlaceParts } from '../predictions/index.js';
import { importAgent } from './agents.js';
import { importForecasts } from './forecasts.js';
import { importResolution } from './resolutions.js';
import {
  type AgentItem,
  agent_item,
  type ForecastItem,
  forecast_item,
  type ItemResult,
  items_body,
  type ResolutionItem,
  resolution_item,
  results_answer,
} from './schema.js';

/**
 * Beside questions, what a season consists of: agents, forecasts, outcomes. Up to 100 items a call,
 * each with its own result; an item that is there already is left as it is.
 */

const route = routeFor<Deps & PlaceParts>();
const body_limit = 4 * 1024 * 1024;
const returns = { 200: results_answer };

type Outcome =
  | (Omit<ItemResult, 'index' | 'status'> & { readonly kind: 'created' | 'exists' })
  | Fault;

const resultOf = (outcome: Outcome, index: number): ItemResult => {
  if (!isFault(outcome)) {
    const { kind: status, ...named } = outcome;
    return { index, status, ...named };
  }
  return { index, status: 'refused', ...refusedItem(outcome) };
};

/** Items that cannot be read are refused one by one; `work` gets the others, in order. */
const makeReader = <T>(schema: TSchema) => {
  const check = compileCheck(schema, 'item');
  return async (
    items: readonly unknown[],
    work: (good: readonly T[]) => Promise<readonly Outcome[]>,
  ): Promise<ItemResult[]> => {
    const wrong = items.map(check);
    const good = items.filter((_, index) => wrong[index] === null) as T[];
    const outcomes = (good.length === 0 ? [] : await work(good))[Symbol.iterator]();
    return wrong.map((fields, index) =>
      fields === null
        ? resultOf(outcomes.next().value as Outcome, index)
        : resultOf(unreadableItem(fields), index),
    );
  };
};

/** What an import goes through with. */
type Work<T> = (
  deps: Deps & PlaceParts,
  items: readonly T[],
  admin: string,
) => Promise<readonly Outcome[]>;

const eachInTurn =
  <T>(work: (deps: Deps & PlaceParts, item: T, admin: string) => Promise<Outcome>): Work<T> =>
  async (deps, items, admin) => {
    const outcomes: Outcome[] = [];
    for (const item of items) outcomes.push(await work(deps, item, admin));
    return outcomes;
  };

const importRoute = <T>(
  named: { readonly id: string; readonly path: string; readonly summary: string },
  schema: TSchema,
  work: Work<T>,
) => {
  const read = makeReader<T>(schema);
  return route({
    ...named,
    ...({ method: 'POST', tag: 'import', auth: 'admin' } as const),
    ...{ body: items_body, body_limit, returns },
    handle: async ({ body, caller }, deps) => {
      const admin = adminName(caller);
      return reply(200, { results: await read(body.items, (items) => work(deps, items, admin)) });
    },
  });
};

const importAgents = importRoute<AgentItem>(
  {
    id: 'importAgents',
    path: '/api/admin/agents/import',
    summary: 'Register up to 100 agents for imported forecasts, linked to the owner of imports',
  },
  agent_item,
  eachInTurn(importAgent),
);

const importPredictions = importRoute<ForecastItem>(
  {
    id: 'importPredictions',
    path: '/api/admin/predictions/import',
    summary: 'Record up to 100 forecasts of imported agents on imported, undecided questions',
  },
  forecast_item,
  importForecasts,
);

const importResolutions = importRoute<ResolutionItem>(
  {
    id: 'importResolutions',
    path: '/api/admin/resolutions/import',
    summary: 'Decide up to 100 imported questions; what is decided already is left as it is',
  },
  resolution_item,
  eachInTurn(importResolution),
);

export const routes = [importAgents, importPredictions, importResolutions];
