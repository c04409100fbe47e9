import { Resolver } from 'node:dns/promises';
import { isIPv4 } from 'node:net';
import type { AddressRules } from './addresses.js';

/**
 * Looks names up and vets every answer. The addresses that come out of here are the ones that are
 * connected to: nothing looks the name up a second time.
 */

/** All A and AAAA addresses of a name; rejects when the lookup fails, [] when there are none. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export type VetProblem = 'name_not_found' | 'lookup_failed' | 'lookup_timeout' | 'address_refused';

export type Vetted =
  | { readonly kind: 'vetted'; readonly addresses: readonly string[] }
  | { readonly kind: 'refused'; readonly code: VetProblem };

const most_answers = 16;

const refusedAs = (code: VetProblem): Vetted => ({ kind: 'refused', code });

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : '';
const isAbsent = (error: unknown): boolean => ['ENODATA', 'ENOTFOUND'].includes(codeOf(error));

export interface ResolveOptions {
  readonly timeout_ms: number;
  /** `address:port` of name servers; those of the system when absent or empty. */
  readonly servers?: readonly string[];
}

/**
 * Asks the name servers for A and AAAA. `/etc/hosts` and search domains play no part.
 * One family that fails does not matter while the other answers: only vetted answers are used.
 */
export const makeResolve = ({ timeout_ms, servers = [] }: ResolveOptions): Resolve => {
  const resolver = new Resolver({ timeout: Math.ceil(timeout_ms / 2), tries: 2 });
  if (servers.length > 0) resolver.setServers(servers);
  const orNone = async (answers: Promise<string[]>): Promise<readonly string[]> => {
    try {
      return await answers;
    } catch (error) {
      if (isAbsent(error)) return [];
      throw error;
    }
  };
  return async (name) => {
    // The dot at the end says that the name is complete.
    const both = await Promise.allSettled([
      orNone(resolver.resolve4(`${name}.`)),
      orNone(resolver.resolve6(`${name}.`)),
    ]);
    const addresses = both.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    const failed = both.find((one) => one.status === 'rejected');
    if (addresses.length === 0 && failed !== undefined) throw failed.reason;
    return addresses;
  };
};

const late = Symbol('late');

const within = async <T>(work: Promise<T>, ms: number): Promise<T | typeof late> => {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<typeof late>((resolve) => {
    timer = setTimeout(() => resolve(late), ms);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
};

export interface VetOptions {
  readonly rules: AddressRules;
  readonly resolve: Resolve;
  readonly timeout_ms: number;
}

const judge = (answers: readonly string[], rules: AddressRules): Vetted => {
  if (answers.length === 0) return refusedAs('name_not_found');
  const addresses = [...new Set(answers)];
  if (addresses.length > most_answers || !addresses.every((one) => rules.mayReach(one))) {
    return refusedAs('address_refused');
  }
  // IPv4 first: on a host without an IPv6 route the other order would cost a failed connect.
  const v4 = addresses.filter((one) => isIPv4(one)).sort();
  const v6 = addresses.filter((one) => !isIPv4(one)).sort();
  return { kind: 'vetted', addresses: [...v4, ...v6] };
};

/** The addresses that `name` may be reached at; one that is not public refuses the whole name. */
export const vetName = async (name: string, options: VetOptions): Promise<Vetted> => {
  try {
    const answers = await within(options.resolve(name), options.timeout_ms);
    return answers === late ? refusedAs('lookup_timeout') : judge(answers, options.rules);
  } catch (error) {
    if (isAbsent(error)) return refusedAs('name_not_found');
    return refusedAs(codeOf(error) === 'ETIMEOUT' ? 'lookup_timeout' : 'lookup_failed');
  }
};
