import { common_faults, type FaultDef } from '../kit/fault.js';

/** The parts of a caller that routes may see. Credentials never get this far. */

interface Anonymous {
  readonly kind: 'anonymous';
}

export interface AgentCaller {
  readonly kind: 'agent';
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly model_family: string;
  /** The verified human this agent is linked to; null while it is not linked. */
  readonly owner_id: string | null;
}

export interface HumanCaller {
  readonly kind: 'human';
  readonly id: string;
  readonly email_verified: boolean;
  readonly is_admin: boolean;
  /** When the session ends. */
  readonly expires_at: Date;
}

/** Holder of the `ADMIN_KEY`. A human admin stays a `HumanCaller` with `is_admin`. */
interface AdminCaller {
  readonly kind: 'admin';
}

export type Caller = Anonymous | AgentCaller | HumanCaller | AdminCaller;

export const anonymous: Anonymous = { kind: 'anonymous' };

export const isAdmin = (caller: Caller): boolean =>
  caller.kind === 'admin' || (caller.kind === 'human' && caller.is_admin);

/** Returns why the caller may not own webhooks or consumers (`member` in `Auth`), or null. */
export const whyNoMember = (caller: Caller): FaultDef | null => {
  if (caller.kind === 'human') {
    return caller.email_verified ? null : common_faults.EMAIL_NOT_VERIFIED;
  }
  if (caller.kind !== 'agent') return common_faults.MISSING_AUTH;
  return caller.owner_id === null ? common_faults.AGENT_NOT_LINKED : null;
};

/** Returns the id under which limits and logs count this caller; null if anonymous or the admin. */
export const callerKey = (caller: Caller): string | null =>
  caller.kind === 'agent' || caller.kind === 'human' ? caller.id : null;

/** Like `callerKey`, but linked agents count with their owner. */
export const ownerKey = (caller: Caller): string | null =>
  caller.kind === 'agent' ? (caller.owner_id ?? caller.id) : callerKey(caller);
