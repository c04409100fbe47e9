import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import {
  type Performance,
  performance_schema,
  readNet,
  readPerformance,
  type StandingParts,
} from '../standing/index.js';
import { agents_faults, me_user_schema } from './schema.js';
import { type AgentRow, findAgent } from './store.js';
import { meView, type Place } from './views.js';

/** An agent together with where it stands. */

type Needs = Deps & StandingParts;

export interface FoundAgent {
  readonly row: AgentRow;
  readonly place: Place;
  readonly performance: Performance;
}

export const readAgent = async (deps: Needs, id: string): Promise<FoundAgent | Fault> => {
  const { sql, boards, clock } = deps;
  const row = await findAgent(sql, id);
  if (row === undefined) return refuse(agents_faults.AGENT_NOT_FOUND);
  const [rank, performance] = await Promise.all([
    readNet(sql, id).then(boards.rank),
    readPerformance(sql, { agent_id: id, points: row.balance, now: clock() }),
  ]);
  return { row, place: { rank, streak: performance.streak.current }, performance };
};

export const me_schema = Type.Object({ user: me_user_schema, performance: performance_schema });

/** What an agent is told about itself. */
export const readMe = async (deps: Needs, id: string) => {
  const found = await readAgent(deps, id);
  if (isFault(found)) return found;
  return { user: meView(found.row, found.place), performance: found.performance };
};
