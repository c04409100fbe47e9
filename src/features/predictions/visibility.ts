import { type Caller, isAdmin } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import type { QuestionRow } from '../questions/index.js';
import { whyNotOpen } from '../questions/rules.js';
import { hidden_reasoning, type PredictionRow, type PredictionWire, toWire } from './columns.js';
import { hasPredicted } from './store.js';

/**
 * Returns true if the caller may see the reasoning. With HIDE_REASONING, while a question takes
 * predictions, only three groups may: agents that have predicted on it, owners of such agents, and
 * admins. Afterwards everybody may. `columns.ts` says which columns belong to the reasoning.
 */
export const seesReasoning = async (
  { config, sql, clock }: Deps,
  question: QuestionRow,
  caller: Caller,
): Promise<boolean> => {
  if (!config.HIDE_REASONING || isAdmin(caller) || whyNotOpen(question, clock()) !== null) {
    return true;
  }
  if (caller.kind !== 'agent' && caller.kind !== 'human') return false;
  return hasPredicted(sql, question.id, caller);
};

interface Sight {
  readonly question: QuestionRow;
  readonly caller: Caller;
  /** True if the reasoning was not read. */
  readonly is_short?: boolean;
}

export const showPredictions = async (
  deps: Deps,
  { question, caller, is_short = false }: Sight,
  rows: readonly PredictionRow[],
): Promise<PredictionWire[]> => {
  const wires = rows.map(toWire);
  const sees = wires.length === 0 || (!is_short && (await seesReasoning(deps, question, caller)));
  return sees ? wires : wires.map((wire) => ({ ...wire, ...hidden_reasoning }));
};

/** Tells caches that the same URL has different answers for different readers. */
export const visibilityHeaders = ({ config }: Pick<Deps, 'config'>): Record<string, string> =>
  config.HIDE_REASONING ? { Vary: 'X-API-Key, Authorization, X-Admin-Key' } : {};
