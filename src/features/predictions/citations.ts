import ipaddr from 'ipaddr.js';
import { findLinks } from '../../kit/text.js';
import type { Failure } from './faults.js';

/**
 * The sources of the reasoning, in its text or in `evidence_urls`. Two gates count different
 * things. CITATIONS_REQUIRED counts the different URLs. CITATIONS_INVALID checks the pages: it
 * fails if unusable URLs or repeated pages leave fewer than two usable pages. So a bare
 * domain beside two good sources does no harm; it is just not stored as a citation.
 */

export const citation_limits = { needed: 2, stored: 50, length: 2_048 } as const;

/** Maximum number of links that are read. A text with far fewer fails as a flood of links. */
const looked_at = 100;

interface Citations {
  /** Usable sources as written, each page once, in the order of the text. */
  readonly citations: readonly string[];
  /** The same pages in the form used for comparison. */
  readonly keys: readonly string[];
  readonly failures: readonly Failure[];
}

/** Returns the URLs in a text. `links` comes from `findLinks`. */
const cutLinks = (text: string, links: readonly number[]): string[] => {
  const written: string[] = [];
  const last = Math.min(links.length, 2 * looked_at);
  for (let i = 0; i < last; i += 2) written.push(text.slice(links[i], links[i + 1]));
  return written;
};

/**
 * `links` comes from `findLinks`. `beside` are texts sent with the reasoning; their links count as
 * if they were part of it.
 */
export const checkCitations = (
  text: string,
  links: readonly number[],
  beside: readonly string[] = [],
): Citations => {
  const written = cutLinks(text, links);
  const others: string[] = [];
  for (const given of beside) {
    const found = cutLinks(given, findLinks(given));
    if (found.length === 0) others.push(`“${shorten(given)}” is not an http(s) URL`);
    written.push(...found);
  }
  const citations: string[] = [];
  const keys: string[] = [];
  const unusable = new Map<string, string>();
  for (const one of written) {
    const { url, key, problem } = readCitation(one);
    if (problem !== null) {
      if (!unusable.has(key)) unusable.set(key, `${shorten(one)} ${problem}`);
    } else if (!keys.includes(key) && keys.length < citation_limits.stored) {
      citations.push(url);
      keys.push(key);
    }
  }
  if (keys.length >= citation_limits.needed) return { citations, keys, failures: [] };
  const counts = { written: written.length, usable: keys.length };
  return { citations, keys, failures: explain(counts, unusable, others) };
};

/** Names the first five pages with their problems. */
export const describePages = (problems: ReadonlyMap<string, string>): string =>
  [...problems]
    .slice(0, 5)
    .map(([url, problem]) => `${shorten(url)} ${problem}`)
    .join('; ');

const shorten = (url: string): string => (url.length > 80 ? `${url.slice(0, 79)}…` : url);

const explain = (
  { written, usable }: { readonly written: number; readonly usable: number },
  unusable: ReadonlyMap<string, string>,
  others: readonly string[],
): Failure[] => {
  const path = 'body.reasoning';
  const distinct = usable + unusable.size;
  const failures: Failure[] = [];
  if (distinct < citation_limits.needed) {
    const found = distinct === 0 ? 'None' : 'Only one';
    const message =
      'Cite at least two different http(s) URLs, in the reasoning or in evidence_urls. ' +
      `${found} was found.`;
    failures.push({ path, message, code: 'CITATIONS_REQUIRED' });
  }
  const reasons = [...unusable.values(), ...others].slice(0, 5);
  if (written > distinct && distinct === 1) reasons.push(`all ${written} links lead to one page`);
  if (reasons.length > 0) {
    const message = `Cite two different pages that others can read. Problems: ${reasons.join('; ')}.`;
    failures.push({ path, message, code: 'CITATIONS_INVALID' });
  }
  return failures;
};

interface Citation {
  /** As written, or in the URL standard's form if that differs in more than case. */
  readonly url: string;
  /** Without fragment, tracking parameters, trailing slash or default port; host in lower case. */
  readonly key: string;
  /** The words to put after the URL, saying why it cannot be a source. Null if it can. */
  readonly problem: string | null;
}

/** A domain name and a plain path, which the parser of the URL standard would not change. */
const plain = /^(https?):\/\/([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?=[/?#]|$)([^?#%]*)(\?[^#]*)?/i;
const remarkable = /\/\.|[^\x21-\x7e]/;
const is_last_label_word = /\.[a-z][a-z0-9-]*$/i;

export const readCitation = (written: string): Citation => {
  if (written.length > citation_limits.length) {
    const problem = `is longer than ${citation_limits.length} characters`;
    return { url: written, key: written, problem };
  }
  const match = plain.exec(written);
  if (match === null || remarkable.test(written) || !is_last_label_word.test(match[2]!)) {
    return readOddCitation(written);
  }
  if (match[0].length < written.length && written[match[0].length] !== '#') {
    return readOddCitation(written);
  }
  const host = match[2]!.toLowerCase();
  return judge({
    url: written,
    origin: `${match[1]!.toLowerCase()}://${host}`,
    host,
    path: match[3]!,
    query: match[4] ?? '',
  });
};

/** Reads a URL that is not plain (port, IP address, escapes, other script), by the URL standard. */
const readOddCitation = (written: string): Citation => {
  let parsed: URL;
  try {
    parsed = new URL(written);
  } catch {
    return { url: written, key: written, problem: 'is not a valid URL' };
  }
  const { origin, hostname: host, pathname: path, search: query } = parsed;
  if (parsed.username !== '' || parsed.password !== '') {
    return { url: written, key: parsed.href, problem: 'contains a user name or password' };
  }
  if (parsed.href.length > citation_limits.length) {
    const problem = `is longer than ${citation_limits.length} characters`;
    return { url: written, key: parsed.href, problem };
  }
  return judge({ url: parsed.href, origin, host, path, query });
};

interface Parts {
  readonly url: string;
  readonly origin: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;
}

const judge = ({ url, origin, host, path, query }: Parts): Citation => {
  const bare_path = dropTrailingSlashes(path);
  const kept = query.length > 1 ? dropTracking(query) : '';
  const key = `${origin}${bare_path}${kept}`;
  const is_bare = bare_path === '' && kept === '';
  return { url, key, problem: hostProblem(host) ?? (is_bare ? 'names a site, not a page' : null) };
};

const dropTrailingSlashes = (path: string): string => {
  let end = path.length;
  while (end > 0 && path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
};

const tracking = new RegExp(
  '^(?:utm_[^=]*|gclid|gclsrc|gbraid|wbraid|dclid|fbclid|msclkid|twclid|ttclid|yclid|igshid|igsh|' +
    'li_fat_id|mc_cid|mc_eid|mkt_tok|_hsenc|_hsmi|_ga|_gl|srsltid|vero_id|oly_enc_id|oly_anon_id|' +
    'ref_src|ref_url|cmpid|spm|s_cid|wt_mc)(?:=|$)',
  'i',
);

const dropTracking = (query: string): string => {
  const kept = query
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '' && !tracking.test(pair));
  return kept.length === 0 ? '' : `?${kept.join('&')}`;
};

/** Hosts that never lead to a public page (RFC 2606, 6761, 6762 and 8375, and common usage). */
const private_host =
  /(?:^|\.)(?:localhost|local|internal|intranet|lan|home|corp|private|home\.arpa|test|invalid)$/;
const placeholder_host = new RegExp(
  '(?:^|\\.)(?:example(?:\\.[a-z]{2,6}){0,2}|' +
    '(?:your-?(?:domain|site|website|company)|my-?domain|placeholder|domain|website)' +
    '\\.(?:com|org|net))$',
);

/** The address parser throws internally on a name, which costs 10 µs, so it never gets names. */
const can_be_address = /^[\d.]+$|:/;

const hostProblem = (host: string): string | null => {
  const name = host.endsWith('.') ? host.slice(0, -1) : host;
  if (name.startsWith('.') || name.includes('..')) return 'is not a valid URL';
  if (placeholder_host.test(name)) return 'is a placeholder';
  const address = name.startsWith('[') ? name.slice(1, -1) : name;
  if (can_be_address.test(address) && ipaddr.isValid(address)) {
    return ipaddr.parse(address).range() === 'unicast' ? null : 'is a private address';
  }
  if (private_host.test(name) || !name.includes('.')) return 'is a private address';
  return null;
};
