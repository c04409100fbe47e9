import { type Fault, refuse } from '../../kit/fault.js';
import { type Pillar, taxonomy_faults } from './schema.js';

/** Whether names stand in the taxonomy; a refusal names those that do. */

export interface Named {
  readonly category?: string | null | undefined;
  readonly subcategory?: string | null | undefined;
  readonly tags?: readonly string[] | undefined;
}

/** Where the names were sent; refusals name it. */
export type NamedIn = 'body' | 'query';

const listSlugs = (all: readonly { readonly slug: string }[]): string =>
  all.map(({ slug }) => slug).join(', ');

const isIn = (all: readonly { readonly slug: string }[], slug: string): boolean =>
  all.some((one) => one.slug === slug);

export const listCategories = (pillars: readonly Pillar[]): string => listSlugs(pillars);

export const isCategory = (pillars: readonly Pillar[], slug: string): boolean =>
  isIn(pillars, slug);

export const isSubcategory = (pillars: readonly Pillar[], slug: string): boolean =>
  pillars.some(({ subcategories }) => isIn(subcategories, slug));

/** Tags begin with #, which has to be escaped in an address; there they do with or without it. */
export const tagOf = (tag: string): string => (tag.startsWith('#') ? tag : `#${tag}`);

const refuseSubcategory = (name: string, pillar: Pillar | undefined, where: NamedIn): Fault => {
  const known =
    pillar === undefined
      ? 'GET /api/taxonomy lists them'
      : `use one of ${listSlugs(pillar.subcategories)}`;
  const of = pillar === undefined ? '' : ` of ${pillar.slug}`;
  const message = `"${name}" is not a subcategory${of}; ${known}.`;
  const fields = [{ path: `${where}.subcategory`, message }];
  return refuse(taxonomy_faults.INVALID_SUBCATEGORY, { message, fields });
};

/** Null when all of the names exist and the subcategory is one of the category. */
export const findUnknown = (
  pillars: readonly Pillar[],
  { category = null, subcategory = null, tags = [] }: Named,
  where: NamedIn,
): Fault | null => {
  const pillar = pillars.find(({ slug }) => slug === category);
  if (category !== null && pillar === undefined) {
    const message = `"${category}" is not a category; use one of ${listCategories(pillars)}.`;
    const fields = [{ path: `${where}.category`, message }];
    return refuse(taxonomy_faults.INVALID_CATEGORY, { message, fields });
  }
  const among = pillar === undefined ? pillars : [pillar];
  if (subcategory !== null && !isSubcategory(among, subcategory)) {
    return refuseSubcategory(subcategory, pillar, where);
  }
  const known = new Set(pillars.flatMap((one) => one.subcategories.flatMap((sub) => sub.tags)));
  const unknown = tags.filter((tag) => !known.has(tag));
  if (unknown.length === 0) return null;
  const path = where === 'body' ? 'body.tags' : 'query.tag';
  return refuse(taxonomy_faults.INVALID_TAG, {
    message: `Not in the taxonomy: ${unknown.join(', ')}; GET /api/taxonomy lists the tags.`,
    fields: unknown.map((tag) => ({ path, message: `${tag} is not known` })),
  });
};
