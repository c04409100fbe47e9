import type { Tx } from '../../db/client.js';
import { emit } from '../../db/event.js';
import type { EventDef } from '../../kit/event.js';
import { makeId } from '../../kit/ids.js';
import { setSuspended } from '../accounts/index.js';
import { type RecordedAct, recordAct } from '../audit/index.js';
import type { Act } from '../audit/schema.js';
import { setCommentHidden } from '../comments/index.js';
import {
  comment_hidden,
  comment_restored,
  prediction_hidden,
  prediction_restored,
} from '../events/catalogue.js';
import { markDebaters, markStanding } from '../leaderboards/index.js';
import { notify } from '../notifications/index.js';
import { type Hidden, setPredictionHidden } from '../predictions/index.js';

/**
 * Hides content and suspends agents, or undoes that: the change, its line in the audit log and its
 * consequences, in the caller's transaction. An action that changes nothing writes no line.
 */

export type ModeratedKind = 'prediction' | 'comment' | 'agent';
export type Verb = 'hide' | 'suspend' | 'restore';

export interface Action {
  readonly kind: ModeratedKind;
  readonly verb: Verb;
  readonly id: string;
  /** The result of `adminName`. */
  readonly admin: string;
  /** Everybody can read it in the moderation log. */
  readonly reason: string;
  readonly at: Date;
}

/** The response body of the action. */
interface Acted {
  readonly changed: boolean;
  readonly question_id?: string;
}

interface Work extends Pick<Action, 'id' | 'reason' | 'at'> {
  /** Time from which the subject is hidden or suspended. Null to restore it. */
  readonly since: Date | null;
  record(more: Partial<RecordedAct>): Promise<void>;
}

type Perform = (tx: Tx, work: Work) => Promise<Acted | undefined>;

/** Hides content or shows it again, and notifies its author. */
const contentOf =
  (
    kind: 'prediction' | 'comment',
    events: { readonly hidden: EventDef; readonly restored: EventDef },
    setHidden: (tx: Tx, id: string, at: Date | null) => Promise<Hidden | undefined>,
  ): Perform =>
  async (tx, { id, reason, at, since, record }) => {
    const row = await setHidden(tx, id, since);
    if (row === undefined) return undefined;
    const { question_id, agent_id: user_id, hidden_at, changed } = row;
    if (changed) {
      await record({ question_id, details: { user_id } });
      await emit(tx, since === null ? events.restored : events.hidden, {
        at,
        scope: { question_id, agent_id: user_id },
        data: { question_id, [`${kind}_id`]: row.id, user_id },
      });
      await notify(tx, [
        {
          agent_id: user_id,
          kind: since === null ? 'content.restored' : 'content.hidden',
          cause: `moderation:${makeId()}`,
          question_id,
          subject_id: row.id,
          at,
          details: { content_kind: kind, reason },
        },
      ]);
    }
    const hidden = hidden_at !== null;
    const acted = { id: row.id, question_id, user_id, hidden, hidden_at, changed };
    return acted;
  };

const performers: Readonly<Record<ModeratedKind, Perform>> = {
  prediction: contentOf(
    'prediction',
    { hidden: prediction_hidden, restored: prediction_restored },
    setPredictionHidden,
  ),
  comment: contentOf(
    'comment',
    { hidden: comment_hidden, restored: comment_restored },
    setCommentHidden,
  ),
  async agent(tx, { id, since, record }) {
    const row = await setSuspended(tx, id, since);
    if (row === undefined) return undefined;
    if (row.changed) {
      await record({});
      await markStanding(tx, [row.id]);
      await markDebaters(tx, [row.id]);
    }
    const acted = { ...row, suspended: row.suspended_at !== null };
    return acted;
  },
};

/**
 * Performs the action and returns the response body, or undefined if no subject has this id. After the
 * commit, call `principals.forget` with an agent and `questions.forget` with the question.
 */
export const act = (tx: Tx, action: Action): Promise<Acted | undefined> => {
  const { kind, verb, id, admin, reason, at } = action;
  const line = { admin, act: `${kind}.${verb}` as Act, subject: { kind, id }, reason, at };
  return performers[kind](tx, {
    id,
    reason,
    at,
    since: verb === 'restore' ? null : at,
    record: (more) => recordAct(tx, { ...line, ...more }),
  });
};
