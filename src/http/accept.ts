/** The media type of an answer where one address has several. */

const media = /^(text\/html|application\/json|text\/markdown)$/;

/**
 * The types that `Accept` names and that some address can answer with, the most wanted first; what is
 * refused by `q=0` and what only a wildcard names is left out, so that the usual type answers it.
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

/** The one of `offered` that is wanted most; the first of them where none is named. */
export const preferredType = <T extends string>(accept: string, offered: readonly [T, ...T[]]): T =>
  namedTypes(accept).find((type): type is T => offered.some((one) => one === type)) ?? offered[0];
