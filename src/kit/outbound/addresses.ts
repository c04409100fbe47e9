import { Resolver } from 'node:dns/promises';
import { isIP, isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { withDeadline } from '../service.js';

/**
 * Which addresses an outbound call may reach: public ones, and those of ranges that the operator
 * allows after all. A range answers for its own family only: `::/8` not for IPv4 addresses, and an
 * IPv4 range not for mapped ones.
 *
 * A name is looked up here, and every answer is vetted. The client connects to the vetted addresses
 * and never looks the name up a second time.
 */

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = readonly [address: Address, bits: number];

export const parseRange = (text: string): Range => {
  const [address, bits, more] = text.split('/');
  const family = isIP(address ?? '');
  const whole = family === 4 ? 32 : 128;
  const size = bits === undefined ? whole : Number(bits);
  const sane = /^\d{1,3}$/.test(bits ?? '0') && size <= whole && more === undefined;
  if (address === undefined || family === 0 || address.includes('%') || !sane) {
    throw new Error(`"${text}" is not an address range such as 10.0.0.0/8 or fd00::/8`);
  }
  return [ipaddr.parse(address), size];
};

/**
 * Refused besides the special ranges that ipaddr.js knows: where a cloud answers its machines, and
 * every form that carries an IPv4 address in front of it.
 */
const also_refused = ['168.63.129.16/32', '::/8'].map(parseRange);

export const isWithin = (address: Address, ranges: readonly Range[]): boolean =>
  ranges.some(
    ([range, bits]) =>
      range.kind() === address.kind() && address.match(range as ipaddr.IPv4 & ipaddr.IPv6, bits),
  );

/** A plain address in its usual notation, or null; a zone (`fe80::1%eth0`) is never plain. */
const readAddress = (text: string): Address | null =>
  isIP(text) === 0 || text.includes('%') ? null : ipaddr.parse(text);

const loopback_ports_from = 10_000;

/**
 * Of this machine itself only ports from 10000 upwards may be called, whatever is allowed: below
 * them are the stores and other services that trust everybody on the machine.
 */
export const isPortOpenAt = (text: string, port: number): boolean => {
  const is_loopback = isIP(text) !== 0 && ipaddr.process(text).range() === 'loopback';
  return port >= loopback_ports_from || !is_loopback;
};

export type AddressRules = ReturnType<typeof makeAddressRules>;

/** Throws when one of the ranges is not `address/bits`. */
export const makeAddressRules = (allowed_ranges: readonly string[]) => {
  const allowed = allowed_ranges.map(parseRange);
  /** Inside a range that the operator allows by name. */
  const isAllowedByName = (text: string): boolean => {
    const address = readAddress(text);
    return address !== null && isWithin(address, allowed);
  };
  /** Public, or inside an allowed range. */
  const mayReach = (text: string): boolean => {
    const address = readAddress(text);
    if (address === null) return false;
    if (isWithin(address, allowed)) return true;
    return address.range() === 'unicast' && !isWithin(address, also_refused);
  };
  return { mayReach, isAllowedByName };
};

/** One spelling for one address, so that two notations compare equal. */
export const canonicalAddress = (text: string): string =>
  readAddress(text) === null ? text : ipaddr.process(text).toString();

/** All A and AAAA addresses of a name; rejects when the lookup fails, [] when there are none. */
export type Resolve = (name: string) => Promise<readonly string[]>;

type VetProblem = 'name_not_found' | 'lookup_failed' | 'lookup_timeout' | 'address_refused';

export type Vetted =
  | { readonly kind: 'vetted'; readonly addresses: readonly string[] }
  | { readonly kind: 'refused'; readonly code: VetProblem };

const most_answers = 16;

const refusedAs = (code: VetProblem): Vetted => ({ kind: 'refused', code });

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : '';
const isAbsent = (error: unknown): boolean => ['ENODATA', 'ENOTFOUND'].includes(codeOf(error));

/**
 * Asks the name servers (`address:port`; none: those of the system) for A and AAAA. `/etc/hosts`
 * and search domains play no part. One family that fails does not matter while the other answers:
 * only vetted answers are used.
 */
export const makeResolve = (timeout_ms: number, servers: readonly string[]): Resolve => {
  const resolver = new Resolver({ timeout: Math.ceil(timeout_ms / 2), tries: 2 });
  if (servers.length > 0) resolver.setServers(servers);
  return async (name) => {
    // The dot at the end says that the name is complete.
    const both = await Promise.allSettled([
      resolver.resolve4(`${name}.`),
      resolver.resolve6(`${name}.`),
    ]);
    const addresses = both.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    const failures = both.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    const failure = failures.find((reason) => !isAbsent(reason));
    if (addresses.length === 0 && failure !== undefined) throw failure;
    return addresses;
  };
};

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
export const vetName = async (
  name: string,
  {
    rules,
    resolve,
    timeout_ms,
  }: { readonly rules: AddressRules; readonly resolve: Resolve; readonly timeout_ms: number },
): Promise<Vetted> => {
  try {
    return judge(await withDeadline(resolve(name), timeout_ms, 'The lookup'), rules);
  } catch (error) {
    if (isAbsent(error)) return refusedAs('name_not_found');
    return refusedAs(codeOf(error) === 'ETIMEOUT' ? 'lookup_timeout' : 'lookup_failed');
  }
};
