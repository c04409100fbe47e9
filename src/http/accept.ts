/** Reads the `Accept` header, for addresses that can answer with several media types. */

const media = /^(text\/html|application\/json|text\/markdown)$/;

/**
 * Returns the media types that `Accept` names and that the service can produce, most wanted first.
 * Types with `q=0` and wildcards are left out: a wildcard gets the default type.
 */
export const namedTypes = (accept: string): readonly string[] =>
  accept
    .toLowerCase()
    .split(',')
    .map((part) => {
      const [type = '', ...parameters] = part.split(';').map((text) => text.trim());
      const quality = parameters.find((text) => text.startsWith('q='))?.slice(2);
      return { type, q: quality === undefined ? 1 : Number(quality) };
    })
    .filter(({ type, q }) => media.test(type) && q > 0)
    .sort((a, b) => b.q - a.q)
    .map(({ type }) => type);

/** Returns the most wanted type of `offered`, or the first of `offered` if `Accept` names none. */
export const preferredType = <T extends string>(accept: string, offered: readonly [T, ...T[]]): T =>
  namedTypes(accept).find((type): type is T => offered.some((one) => one === type)) ?? offered[0];
