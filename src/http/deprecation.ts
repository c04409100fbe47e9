/** Headers and text for deprecated routes: RFC 9745, RFC 8594 and RFC 5829. */

/** Days are UTC, as YYYY-MM-DD. Addresses are full URLs, or paths of this service. */
export interface Deprecation {
  readonly since: string;
  /** The route may be removed on or after this day. */
  readonly sunset?: string;
  /** The page that says why the route is deprecated, and what to do. */
  readonly link?: string;
  /** The address that replaces the route. */
  readonly successor?: string;
}

type Header = readonly [name: string, value: string];

export const deprecationHeaders = (deprecated: Deprecation | undefined): readonly Header[] => {
  if (deprecated === undefined) return [];
  const { since, sunset, link, successor } = deprecated;
  const headers: Header[] = [['Deprecation', `@${Date.parse(since) / 1_000}`]];
  if (sunset !== undefined) headers.push(['Sunset', new Date(sunset).toUTCString()]);
  if (link !== undefined) headers.push(['Link', `<${link}>; rel="deprecation"; type="text/html"`]);
  if (successor !== undefined) headers.push(['Link', `<${successor}>; rel="successor-version"`]);
  return headers;
};

/** Returns one sentence about the deprecation, for the documents of the API. */
export const describeDeprecation = ({ since, sunset, link, successor }: Deprecation): string => {
  const parts = [
    `Deprecated since ${since}`,
    ...(sunset === undefined ? [] : [`may be removed on or after ${sunset}`]),
    ...(successor === undefined ? [] : [`use ${successor}`]),
    ...(link === undefined ? [] : [`see ${link}`]),
  ];
  return `${parts.join('; ')}.`;
};
