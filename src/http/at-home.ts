import { type Fault, isFault } from '../kit/fault.js';
import type { HomeProcesses } from '../redis/home-process.js';
import type { HeldClaim, Idempotency } from './idempotency.js';
import { type Answer, type Claim, type Reply, reply } from './route.js';

/**
 * Answers calls on the home process of their question, so that batches are large and one process
 * remembers everything about a question. If the home's answer is lost, this process answers.
 * Nothing is stored twice: transactions take locks, and a repeated body finds the stored answer.
 */

export interface HomeTask<A> {
  readonly name: string;
  subjectOf(request: A): string;
  /** If the same body was stored before, returns the stored answer as a replay. */
  answer(request: A): Promise<Reply | Fault>;
}

interface Answered {
  readonly answer: Reply | Fault;
  /** True if the transaction of the write stored the answer under the call's Idempotency-Key. */
  readonly is_stored: boolean;
}

export type AnswerAtHome = ReturnType<typeof makeAnswerAtHome>;

/** The clocks of two processes differ by less than this. */
const skew_ms = 1_000;

/** If the replay is of this very call, which the home had stored, makes it a first answer. */
const asFirst = (answer: Reply | Fault, tried_ms: number): Reply | Fault => {
  if (isFault(answer) || answer.headers?.['Idempotency-Replayed'] === undefined) return answer;
  const body = answer.body as Record<string, { created_at: string | Date }>;
  const [stored] = Object.values(body);
  const is_own = new Date(stored?.created_at ?? 0).getTime() > tried_ms - skew_ms;
  if (!is_own) return answer;
  return reply(201, 'replayed' in body ? { ...body, replayed: false } : body);
};

export const makeAnswerAtHome =
  (homes: HomeProcesses, { claimOf }: Pick<Idempotency, 'claimOf'>) =>
  /** Except for its `claim`, a request must be serialisable as JSON. */
  <A extends { readonly claim: Claim | null }>({ name, subjectOf, answer }: HomeTask<A>) => {
    type Sent = { readonly request: Omit<A, 'claim'>; readonly claim: HeldClaim | null };
    const askHome = homes.onHome<Sent, Answered>({
      name,
      subjectOf: ({ request }) => subjectOf(request as A),
      async run(sent, tried_ms) {
        const claim = sent.claim === null ? null : claimOf(sent.claim);
        const given = await answer({ claim, ...sent.request } as A);
        const first = tried_ms === null ? given : asFirst(given, tried_ms);
        return { answer: first, is_stored: claim !== null && claim.stored !== null };
      },
    });
    return async (whole: A): Promise<Answer> => {
      if (homes.isHere(subjectOf(whole))) return answer(whole);
      const { claim, ...request } = whole;
      const held = claim && { scope: claim.scope, key: claim.key, lease_id: claim.lease_id };
      const { answer: given, is_stored } = await askHome({ request, claim: held });
      if (claim !== null && is_stored) claim.stored = given;
      return given;
    };
  };
