import ipaddr from 'ipaddr.js';

/** The address a request comes from, and under which name limits count it. */
export interface Address {
  readonly text: string;
  /** IPv4: the address; IPv6: its /64. */
  readonly limit_key: string;
}

type Range = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

export const parseRanges = (ranges: readonly string[]): readonly Range[] =>
  ranges.map((text) => {
    const cidr = text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`;
    return ipaddr.parseCIDR(cidr) as Range;
  });

const isInside = (address: ipaddr.IPv4 | ipaddr.IPv6, ranges: readonly Range[]): boolean =>
  ranges.some(([range, bits]) => address.kind() === range.kind() && address.match(range, bits));

const describe = (address: ipaddr.IPv4 | ipaddr.IPv6): Address => {
  const text = address.toString();
  if (address.kind() === 'ipv4') return { text, limit_key: text };
  const prefix = (address as ipaddr.IPv6).parts.slice(0, 4).map((part) => part.toString(16));
  return { text, limit_key: `${prefix.join(':')}::/64` };
};

/** The address that `text` is, as an `AddressReader` gave it. */
export const readAddressText = (text: string): Address => describe(ipaddr.process(text));

export type AddressReader = (remote: string, forwarded_for: string) => Address;

/**
 * Reads the raw remote address (the bytes that uWS gives, as latin1) and X-Forwarded-For. The
 * header is believed only as far as it was written by trusted proxies: read from its right end, the
 * first address that is not a trusted proxy is the client.
 */
export const makeAddressReader = (trusted_proxies: readonly string[]): AddressReader => {
  const trusted = parseRanges(trusted_proxies);
  const cache = new Map<string, Address>();
  const readRemote = (remote: string): ipaddr.IPv4 | ipaddr.IPv6 =>
    ipaddr.process(ipaddr.fromByteArray([...Buffer.from(remote, 'latin1')]).toString());

  const read = (remote: string, forwarded_for: string): Address => {
    let address = readRemote(remote);
    if (forwarded_for === '') return describe(address);
    for (const hop of forwarded_for.split(',').reverse()) {
      if (!isInside(address, trusted)) break;
      const text = hop.trim();
      if (!ipaddr.isValid(text)) break;
      address = ipaddr.process(text);
    }
    return describe(address);
  };

  return (remote, forwarded_for) => {
    const header = trusted.length === 0 ? '' : forwarded_for.slice(-500);
    const key = header === '' ? remote : `${remote} ${header}`;
    const known = cache.get(key);
    if (known !== undefined) return known;
    const address = read(remote, header);
    if (cache.size >= 10_000) cache.clear();
    cache.set(key, address);
    return address;
  };
};
