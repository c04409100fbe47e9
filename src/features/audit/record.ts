import type { Caller } from '../../kit/http/route.js';
import { makeId } from '../../kit/ids.js';
import type { Tx } from '../../kit/pg/client.js';
import { withoutControls } from '../../kit/text.js';
import type { Act } from './schema.js';
import { insertAct } from './store.js';

/** Who acts as admin, in the form that tables keep: `admin` for the key, else `human:<id>`. */
export const adminName = (caller: Caller): string =>
  caller.kind === 'human' ? `human:${caller.id}` : 'admin';

export interface RecordedAct {
  /** From `adminName`. */
  readonly admin: string;
  readonly act: Act;
  /** `{ kind: 'question', id }`; the kind is a word, the id whatever names the thing. */
  readonly subject: { readonly kind: string; readonly id: string };
  readonly question_id?: string;
  /** At most 5,000 characters; blank is none. */
  readonly reason?: string | null;
  /** A few small members that say what was decided or changed. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly at: Date;
}

/**
 * Writes one line of the audit log in the transaction of the act, so that there is no act without
 * its line and no line without its act. Call it only when something was changed.
 */
export const recordAct = async (tx: Tx, made: RecordedAct): Promise<void> => {
  const { admin, act, subject, question_id, details, at } = made;
  const reason = withoutControls(made.reason ?? '').trim();
  const of_question = subject.kind === 'question' ? subject.id : null;
  await insertAct(tx, {
    ...{ id: makeId(), at, admin, act },
    ...{ subject_kind: subject.kind, subject_id: subject.id },
    question_id: question_id ?? of_question,
    reason: reason === '' ? null : reason,
    details: details ?? null,
  });
};
