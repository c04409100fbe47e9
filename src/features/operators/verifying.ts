import { LRUCache } from 'lru-cache';
import type { Request } from '../../http/call.js';
import type { AgentCaller, Caller } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { describeError } from '../../kit/log.js';
import { createDirectories, createDirectoryReader } from './directories.js';
import { findClaim, findProblem, type Keys, type SignatureClaim, validKey } from './rules.js';
import * as store from './store.js';

/**
 * Checks the signatures of linked agents. The API key authenticates an agent; a signature only says
 * who runs it. A wrong signature is refused, so that the sender finds out. If the operator's
 * directory is not cached or cannot be reached, the request continues. The signature is checked
 * when the directory arrives.
 */

/** This process does not write the same badge again within this time. */
const noted_ms = 300_000;

export const createOperators = (deps: Deps) => {
  const { config, sql, clock, log } = deps;
  const reader = createDirectoryReader(config);
  const noted = new LRUCache<string, string>({ max: 50_000, ttl: noted_ms });
  const directories = createDirectories({
    reader,
    clock,
    onRead: (origin, keys) => store.dropKeys(sql, origin, [...keys.keys()]),
  });

  const note = async (agent_id: string, { origin, keyid }: SignatureClaim): Promise<void> => {
    const badge = `${origin} ${keyid}`;
    if (noted.get(agent_id) === badge) return;
    await store.noteOperator(sql, { agent_id, origin, keyid, at: clock() });
    noted.set(agent_id, badge);
  };

  /** If the database is down, only the badge is lost. The request continues. */
  const logFailure = (error: unknown): void =>
    log.warn(describeError(error), 'operators: a badge was not stored');

  const judge = async (
    { method, path, query, headers, raw_body: body }: Request,
    { id }: AgentCaller,
    { claim, keys }: { readonly claim: SignatureClaim; readonly keys: Keys },
  ): Promise<Fault | null> => {
    const url = `${deps.public_url}${path}${query === '' ? '' : `?${query}`}`;
    const now_s = clock().getTime() / 1_000;
    const key = validKey(keys, claim.keyid, now_s);
    const problem =
      key === undefined
        ? `${claim.origin} publishes no valid key with this keyid.`
        : await findProblem({ method, url, headers, body }, claim, { key, now_s });
    if (problem !== null) {
      return refuse(common_faults.INVALID_SIGNATURE, {
        message: `The signature is not valid: ${problem}`,
      });
    }
    await note(id, claim).catch(logFailure);
    return null;
  };

  return {
    /** Returns a fault if the signature is wrong, else null. */
    check(request: Request, caller: Caller): Promise<Fault | null> | null {
      if (caller.kind !== 'agent' || caller.owner_id === null) return null;
      if (request.headers['signature-input'] === undefined) return null;
      // Socket frames are not HTTP requests, so they cannot be signed.
      if (request.socket !== undefined) return null;
      const claim = findClaim(request.headers);
      if (claim === null) return null;
      const found = directories.find(claim.origin, claim.keyid, caller.id);
      if (!(found instanceof Promise)) return judge(request, caller, { claim, keys: found });
      found
        .then((keys) => (keys === null ? null : judge(request, caller, { claim, keys })))
        .catch(logFailure);
      return null;
    },
    close: () => reader.close(),
  };
};
