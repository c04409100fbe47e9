import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Which addresses an outbound call may reach: public ones, and those of ranges that the operator
 * allows after all. Each family has a list of its own: one list over both would let an IPv6 range
 * such as `::/8` answer for IPv4 addresses, or an IPv4 rule answer for mapped ones.
 */

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = readonly [address: Address, bits: number];

const refused_v4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '168.63.129.16/32',
];

const refused_v6 = [
  // Unspecified, loopback, and every form that carries an IPv4 address in front of it.
  '::/8',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
];

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

const refused: Readonly<Record<'ipv4' | 'ipv6', readonly Range[]>> = {
  ipv4: refused_v4.map(parseRange),
  ipv6: refused_v6.map(parseRange),
};

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

export interface AddressRules {
  /** Public, or inside an allowed range. */
  mayReach(address: string): boolean;
  /** Inside a range that the operator allows by name. */
  isAllowedByName(address: string): boolean;
}

/** Throws when one of the ranges is not `address/bits`. */
export const makeAddressRules = (allowed_ranges: readonly string[]): AddressRules => {
  const allowed = allowed_ranges.map(parseRange);
  const isAllowedByName = (text: string): boolean => {
    const address = readAddress(text);
    return address !== null && isWithin(address, allowed);
  };
  const mayReach = (text: string): boolean => {
    const address = readAddress(text);
    if (address === null) return false;
    return isWithin(address, allowed) || !isWithin(address, refused[address.kind()]);
  };
  return { mayReach, isAllowedByName };
};

/** One spelling for one address, so that two notations compare equal. */
export const canonicalAddress = (text: string): string =>
  readAddress(text) === null ? text : ipaddr.process(text).toString();
