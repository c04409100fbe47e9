import type { Logger } from 'pino';
import { describeError } from '../../kit/log.js';
import type { Sql } from '../../kit/pg/client.js';
import { withDeadline } from '../../kit/service.js';
import { type CloseCode, close_codes } from '../../kit/ws/close-codes.js';
import type { Credential, Hub } from '../../kit/ws/hub.js';
import { readStanding, type Standing } from './sockets-store.js';

/** A credential that holds no longer takes its sockets with it within a second. */

export interface CheckerOptions {
  readonly sql: Sql;
  readonly log: Logger;
  readonly hub: () => Hub;
  /**
   * True while `ofAgent` is sure to be called for every agent that changes. While it is not, the
   * keys of agents are checked again and again, often enough for the same bound.
   */
  readonly purges_trusted: () => boolean;
}

export interface Checker {
  /** Something about this agent changed. */
  ofAgent(agent_id: string): void;
  /** To be called several times a second. */
  tick(): void;
}

const check_every_ms = 700;
const check_anyway_ms = 10_000;
const check_chunk = 1_000;

const endings: Readonly<Record<Exclude<Standing, 'holds'>, { code: CloseCode; reason: string }>> = {
  gone: { code: close_codes.UNAUTHENTICATED, reason: 'credential revoked' },
  suspended: { code: close_codes.FORBIDDEN, reason: 'account suspended' },
  expired: { code: close_codes.CREDENTIAL_EXPIRED, reason: 'credential expired' },
};

/** Closes the sockets of those that do not hold. */
const check = async (options: CheckerOptions, credentials: readonly Credential[]) => {
  const { sql, hub } = options;
  for (let from = 0; from < credentials.length; from += check_chunk) {
    const digests = credentials.slice(from, from + check_chunk).map(({ digest }) => digest);
    const standing = await withDeadline(readStanding(sql, digests), 10_000, 'Checking keys');
    const asked = new Set(digests.map((digest) => digest.toString('hex')));
    for (const [ending, { code, reason }] of Object.entries(endings)) {
      const matches = (_: unknown, digest: Buffer | null): boolean => {
        const name = digest?.toString('hex') ?? '';
        return asked.has(name) && (standing.get(name) ?? 'gone') === ending;
      };
      hub().closeWhere({ matches, code, reason });
    }
  }
};

export const makeChecker = (options: CheckerOptions): Checker => {
  const { log, hub, purges_trusted } = options;
  let checked_ms = 0;
  let agents_checked_ms = 0;
  let under_way = false;

  /** Postgres away: nothing can have been revoked either. */
  const report = (error: unknown): void => {
    log.warn(describeError(error), 'sockets: could not check credentials');
  };
  const checkAgent = (agent_id: string): void => {
    const of_agent = hub()
      .credentials()
      .filter(({ caller }) => caller.kind === 'agent' && caller.id === agent_id);
    if (of_agent.length > 0) check(options, of_agent).catch(report);
  };

  return {
    /** Now, and once more for a socket that was being let in by what was true before. */
    ofAgent(agent_id) {
      checkAgent(agent_id);
      setTimeout(checkAgent, check_every_ms, agent_id).unref();
    },
    /** Sessions of people have no purges: they are asked about each time. */
    tick() {
      const now_ms = performance.now();
      if (under_way || now_ms - checked_ms < check_every_ms) return;
      checked_ms = now_ms;
      const with_agents = !purges_trusted() || now_ms - agents_checked_ms > check_anyway_ms;
      if (with_agents) agents_checked_ms = now_ms;
      under_way = true;
      const due = hub()
        .credentials()
        .filter(({ caller }) => with_agents || caller.kind !== 'agent');
      check(options, due)
        .catch(report)
        .finally(() => {
          under_way = false;
        });
    },
  };
};
