import { type Fault, isFault } from '../kit/fault.js';
import type { HandOver } from '../redis/hand-over.js';
import type { HeldClaim, Idempotency } from './idempotency.js';
import { type Answer, type Claim, type Reply, reply } from './route.js';

/**
 * Calls that are answered where their question has its owner, so that batches are whole and one
 * process knows what was written there. The locks of their transactions stay the judge: what an
 * owner stored before its answer was lost is found by its body when the call is answered here.
 */

export interface OwnerWork<A> {
  readonly name: string;
  subjectOf(request: A): string;
  /** A body that was stored before is answered as replayed, with what was stored. */
  answer(request: A): Promise<Reply | Fault>;
}

interface Answered {
  readonly answer: Reply | Fault;
  /** It is stored with what was written, under the key of the call. */
  readonly is_kept: boolean;
}

export type AnswerAtOwner = ReturnType<typeof makeAnswerAtOwner>;

/** Clocks of processes differ by less. */
const skew_ms = 1_000;

/** A replay of what this very call had stored elsewhere, as the first answer that it is. */
const asFirst = (answer: Reply | Fault, tried_ms: number): Reply | Fault => {
  if (isFault(answer) || answer.headers?.['Idempotency-Replayed'] === undefined) return answer;
  const body = answer.body as Record<string, { created_at: string | Date }>;
  const [stored] = Object.values(body);
  const is_own = new Date(stored?.created_at ?? 0).getTime() > tried_ms - skew_ms;
  if (!is_own) return answer;
  return reply(201, 'replayed' in body ? { ...body, replayed: false } : body);
};

export const makeAnswerAtOwner =
  (handOver: HandOver, { claimOf }: Pick<Idempotency, 'claimOf'>) =>
  /** Requests are JSON, but for the claim of a call with an Idempotency-Key. */
  <A extends { readonly claim: Claim | null }>({ name, subjectOf, answer }: OwnerWork<A>) => {
    type Handed = { readonly request: Omit<A, 'claim'>; readonly claim: HeldClaim | null };
    const answerThere = handOver.share<Handed, Answered>({
      name,
      subjectOf: ({ request }) => subjectOf(request as A),
      async run(handed, tried_ms) {
        const claim = handed.claim === null ? null : claimOf(handed.claim);
        const given = await answer({ claim, ...handed.request } as A);
        const first = tried_ms === null ? given : asFirst(given, tried_ms);
        return { answer: first, is_kept: claim !== null && claim.kept !== null };
      },
    });
    return async ({ claim, ...request }: A): Promise<Answer> => {
      const held = claim && { scope: claim.scope, key: claim.key, lease_id: claim.lease_id };
      const { answer: given, is_kept } = await answerThere({ request, claim: held });
      if (claim !== null && is_kept) claim.kept = given;
      return given;
    };
  };
