import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import type { Owner } from './store.js';

/** Whose webhooks a caller may see. */
export const ownerOf = (caller: { kind: 'agent' | 'human'; id: string }): Owner => ({
  kind: caller.kind,
  id: caller.id,
});

export const webhookAbsent = (): Fault =>
  refuse(common_faults.NOT_FOUND, { message: 'You have no webhook with this id.' });
