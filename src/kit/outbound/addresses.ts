import { Resolver } from 'node:dns/promises';
import { isIP, isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { withDeadline } from '../service.js';

/**
 * Decides which addresses an outbound call may reach: public ones, and ranges that the operator
 * allows. A range matches only its own family: `::/8` does not match IPv4 addresses, and an IPv4
 * range does not match IPv4 addresses that are mapped into IPv6.
 *
 * Names are looked up here, and every answer is vetted. The client connects to the vetted addresses
 * and never looks the name up again.
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
 * Refused in addition to the special ranges that ipaddr.js knows: the address at which Azure serves
 * its own machines, and the IPv6 addresses in `::/8`, which may contain an IPv4 address.
 */
const also_refused = ['168.63.129.16/32', '::/8'].map(parseRange);

export const isWithin = (address: Address, ranges: readonly Range[]): boolean =>
  ranges.some(
    ([range, bits]) =>
      range.kind() === address.kind() && address.match(range as ipaddr.IPv4 & ipaddr.IPv6, bits),
  );

/** Parses an address. Returns null for other text, or if it has a zone (`fe80::1%eth0`). */
const readAddress = (text: string): Address | null =>
  isIP(text) === 0 || text.includes('%') ? null : ipaddr.parse(text);

const loopback_ports_from = 10_000;

/**
 * On this machine itself only ports from 10000 upwards may be called, even in an allowed range. The
 * lower ports belong to the stores and other services that trust everybody on the machine.
 */
export const isPortOpenAt = (text: string, port: number): boolean => {
  const is_loopback = isIP(text) !== 0 && ipaddr.process(text).range() === 'loopback';
  return port >= loopback_ports_from || !is_loopback;
};

export type AddressRules = ReturnType<typeof makeAddressRules>;

/** Throws if a range does not have the form `address/bits`. */
export const makeAddressRules = (allowed_ranges: readonly string[]) => {
  const allowed = allowed_ranges.map(parseRange);
  /** True if the address is in a range that the operator allows. */
  const isAllowedByName = (text: string): boolean => {
    const address = readAddress(text);
    return address !== null && isWithin(address, allowed);
  };
  /** True if the address is public or in an allowed range. */
  const mayReach = (text: string): boolean => {
    const address = readAddress(text);
    if (address === null) return false;
    if (isWithin(address, allowed)) return true;
    return address.range() === 'unicast' && !isWithin(address, also_refused);
  };
  return { mayReach, isAllowedByName };
};

/** Returns one spelling per address, so that two notations compare equal. */
export const canonicalAddress = (text: string): string =>
  readAddress(text) === null ? text : ipaddr.process(text).toString();

/**
 * Returns all A and AAAA addresses of a name, [] if it has no address. Rejects if the lookup fails.
 */
export type Resolve = (name: string) => Promise<readonly string[]>;

type VetProblem = 'name_not_found' | 'lookup_failed' | 'lookup_timeout' | 'address_refused';

export type Vetted =
  | { readonly kind: 'vetted'; readonly addresses: readonly string[] }
  | { readonly kind: 'refused'; readonly code: VetProblem };

const max_answers = 16;

const refusedAs = (code: VetProblem): Vetted => ({ kind: 'refused', code });

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : '';
const isAbsent = (error: unknown): boolean => ['ENODATA', 'ENOTFOUND'].includes(codeOf(error));

/**
 * Asks the name servers (`address:port`; an empty list means the system's) for A and AAAA records.
 * It ignores `/etc/hosts` and search domains. If one family fails, the answers of the other are
 * enough, because only vetted answers are used.
 */
export const makeResolve = (timeout_ms: number, servers: readonly string[]): Resolve => {
  const resolver = new Resolver({ timeout: Math.ceil(timeout_ms / 2), tries: 2 });
  if (servers.length > 0) resolver.setServers(servers);
  return async (name) => {
    // The trailing dot says that the name is complete.
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
  if (addresses.length > max_answers || !addresses.every((one) => rules.mayReach(one))) {
    return refusedAs('address_refused');
  }
  // IPv4 comes first: on a host without an IPv6 route, the other order would cost a failed connect.
  const v4 = addresses.filter((one) => isIPv4(one)).sort();
  const v6 = addresses.filter((one) => !isIPv4(one)).sort();
  return { kind: 'vetted', addresses: [...v4, ...v6] };
};

/** Looks `name` up and vets the addresses. If one is not allowed, the name is refused. */
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
