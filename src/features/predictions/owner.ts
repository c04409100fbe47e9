import type { HeldClaim, Idempotency } from '../../http/idempotency.js';
import { type Reply, reply } from '../../http/route.js';
import { type Fault, isFault } from '../../kit/fault.js';
import type { HandOver } from '../../redis/hand-over.js';
import type { PredictionWire } from './columns.js';
import { answerRequest, type Needs, type PlaceRequest } from './placing.js';

/**
 * Predictions are placed where their question has its owner, so that batches are whole and one
 * process knows what was written on a question. The locks of `placing.ts` stay the judge: a
 * prediction that was placed by an owner whose answer was lost is found by its body when it is
 * tried here.
 */

export interface PlaceAtOwnerParts {
  /** `answerRequest` at the owner of the question. */
  placeAtOwner(request: PlaceRequest): Promise<Reply | Fault>;
}

/** A request as it is handed over. */
interface Handed extends Omit<PlaceRequest, 'claim'> {
  readonly claim: HeldClaim | null;
}

interface Placed {
  readonly answer: Reply | Fault;
  /** The answer is stored with the prediction, under the key of the call. */
  readonly is_kept: boolean;
}

/** Clocks of processes differ by less. */
const skew_ms = 1_000;

/** A replay of what this very call had placed elsewhere, as the first answer that it is. */
const asFirst = (answer: Reply | Fault, tried_ms: number): Reply | Fault => {
  if (isFault(answer) || answer.headers?.['Idempotency-Replayed'] === undefined) return answer;
  const { prediction } = answer.body as { readonly prediction: PredictionWire };
  const is_own = Date.parse(prediction.created_at) > tried_ms - skew_ms;
  return is_own ? reply(201, answer.body) : answer;
};

export const makePlaceAtOwner = (
  deps: () => Needs,
  { claimOf }: Pick<Idempotency, 'claimOf'>,
  handOver: HandOver,
): PlaceAtOwnerParts['placeAtOwner'] => {
  const place = handOver.share<Handed, Placed>({
    name: 'place',
    subjectOf: ({ question_id }) => question_id,
    async run(handed, tried_ms) {
      const claim = handed.claim === null ? null : claimOf(handed.claim);
      const given = await answerRequest(deps(), { ...handed, claim });
      const answer = tried_ms === null ? given : asFirst(given, tried_ms);
      return { answer, is_kept: claim !== null && claim.kept !== null };
    },
  });
  return async ({ claim, ...request }) => {
    const held =
      claim === null ? null : { scope: claim.scope, key: claim.key, lease_id: claim.lease_id };
    const { answer, is_kept } = await place({ ...request, claim: held });
    if (claim !== null && is_kept) claim.kept = answer;
    return answer;
  };
};
