import type { Deps } from '../../kit/deps.js';
import type { AgentCaller } from '../../kit/http/caller.js';
import type { Claim } from '../../kit/idempotency.js';
import type { Taken } from '../../kit/limits.js';
import type { QuestionParts } from '../questions/index.js';
import type { Gates } from './gates.js';
import type { Placing } from './placing.js';
import type { Reach } from './reach.js';
import type { PredictBody, PredictionWire } from './schema.js';

/** What a prediction is placed with, what is asked, and what comes of it. */

export interface PlaceParts extends QuestionParts {
  readonly gates: Gates;
  readonly placing: Placing;
  /** Null where sources need not be reachable. */
  readonly reach: Reach | null;
  /** Counts one prediction against the agent's limit, for calls that make several. */
  takePrediction(agent_id: string): Promise<Taken>;
}

export interface Placed {
  readonly prediction: PredictionWire;
  /** What the agent has. */
  readonly points: number;
  readonly event_id: string;
  /** True: this body was accepted before, and this is that result. */
  readonly replayed: boolean;
}

export interface PlaceAsk {
  readonly question_id: string;
  readonly body: PredictBody;
  readonly body_digest: string;
  readonly agent: AgentCaller;
  /** Of a call with an Idempotency-Key. */
  readonly claim: Claim | null;
  /** Until when sources are asked for, of several predictions in one call. */
  readonly asks_until_ms?: number;
  /** Called when it waits for nothing but its batch, or is refused by what is known already. */
  readonly onUnderWay?: () => void;
}

export type Needs = Deps & PlaceParts;
