import type { Deps } from '../../kit/deps.js';
import { type Fault, type FaultDef, isFault, refuse } from '../../kit/fault.js';
import type { Caller } from '../../kit/http/route.js';
import { type Answer, type Reply, reply } from '../../kit/http/route.js';
import { makeId } from '../../kit/ids.js';
import type { Tx } from '../../kit/pg/client.js';
import { readText } from '../../kit/text.js';
import { type AgentDeps, setSuspended } from '../agents/index.js';
import { type Act, adminName, recordAct } from '../audit/index.js';
import { notify } from '../notifications/index.js';
import type { Hidden } from '../predictions/index.js';
import type { QuestionParts } from '../questions/index.js';
import { markDebaters, markStanding } from '../standing/index.js';
import { reason_limits } from './schema.js';

/**
 * What admins do to content and agents. Each act is one transaction: the change, its line in the
 * audit log, what follows from it, and the answer kept for a repeat. What was so already stays as
 * it is and leaves no line.
 */

export interface Content {
  readonly kind: 'prediction' | 'comment';
  readonly absent: FaultDef;
  /** Hides (`at`) or shows again (null); undefined when there is none with this id. */
  setHidden(tx: Tx, id: string, at: Date | null): Promise<Hidden | undefined>;
}

interface ActCall {
  readonly caller: Caller;
  readonly body: { readonly reason: string };
  keep(tx: Tx, answer: Answer): Promise<void>;
}

const readReason = ({ body }: ActCall): string | Fault =>
  readText(body.reason, 'body.reason', reason_limits);

interface ContentAct {
  readonly content: Content;
  readonly id: string;
  readonly hide: boolean;
}

const tellAuthor = (tx: Tx, made: ContentAct & { row: Hidden; reason: string; at: Date }) => {
  const { content, hide, row, reason, at } = made;
  return notify(tx, [
    {
      ...{ agent_id: row.agent_id, kind: hide ? 'content.hidden' : 'content.restored' },
      ...{ cause: `moderation:${makeId()}`, question_id: row.question_id, subject_id: row.id, at },
      details: { content_kind: content.kind, reason },
    },
  ]);
};

export const actOnContent = async (
  call: ActCall,
  { sql, clock, questions }: Deps & QuestionParts,
  act: ContentAct,
): Promise<Answer> => {
  const reason = readReason(call);
  if (isFault(reason)) return reason;
  const { content, id, hide } = act;
  let about: string | null = null;
  const made = await sql.begin(async (tx) => {
    const at = clock();
    const row = await content.setHidden(tx, id, hide ? at : null);
    if (row === undefined) return refuse(content.absent);
    const { question_id, agent_id, hidden_at, changed } = row;
    about = question_id;
    if (changed) {
      await recordAct(tx, {
        ...{ admin: adminName(call.caller), question_id, reason, at },
        act: `${content.kind}.${hide ? 'hide' : 'restore'}` satisfies Act,
        subject: { kind: content.kind, id: row.id },
        details: { user_id: agent_id },
      });
      await tellAuthor(tx, { ...act, row, reason, at });
    }
    const answer = reply(200, {
      ...{ id: row.id, question_id, user_id: agent_id, hidden: hidden_at !== null, changed },
      hidden_at: hidden_at?.toISOString() ?? null,
    });
    await call.keep(tx, answer);
    return answer;
  });
  if (about !== null) questions.forget(about);
  return made;
};

export interface AgentAct {
  readonly id: string;
  readonly suspend: boolean;
  readonly absent: FaultDef;
}

export const actOnAgent = async (
  call: ActCall,
  deps: AgentDeps,
  { id, suspend, absent }: AgentAct,
): Promise<Answer> => {
  const reason = readReason(call);
  if (isFault(reason)) return reason;
  const answer = await deps.sql.begin(async (tx): Promise<Reply | Fault> => {
    const at = deps.clock();
    const row = await setSuspended(tx, id, suspend ? at : null);
    if (row === undefined) return refuse(absent);
    if (row.changed) {
      await recordAct(tx, {
        ...{ admin: adminName(call.caller), reason, at },
        act: suspend ? 'agent.suspend' : 'agent.restore',
        subject: { kind: 'agent', id: row.id },
      });
      await markStanding(tx, [row.id]);
      await markDebaters(tx, [row.id]);
    }
    const { suspended_at, changed } = row;
    const made = reply(200, {
      ...{ id: row.id, suspended: suspended_at !== null, changed },
      suspended_at: suspended_at?.toISOString() ?? null,
    });
    await call.keep(tx, made);
    return made;
  });
  if (!isFault(answer)) deps.principals.forget(id);
  return answer;
};
