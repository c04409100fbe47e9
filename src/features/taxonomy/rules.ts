import { type Static, Type } from '@sinclair/typebox';
import { defineFaults, type Fault, refuse } from '../../kit/fault.js';

/** The taxonomy on the wire, and a check of names against it. A refusal lists the valid names. */

export const taxonomy_faults = defineFaults({
  INVALID_CATEGORY: [400, 'validation', 'The category is not in the taxonomy.'],
  INVALID_SUBCATEGORY: [400, 'validation', 'The subcategory does not belong to this category.'],
  INVALID_TAG: [400, 'validation', 'A tag is not in the taxonomy.'],
});

const subcategory_schema = Type.Object({
  slug: Type.String(),
  name: Type.String(),
  tags: Type.Array(Type.String()),
});

/** A bare array, because existing clients expect one. */
export const taxonomy_schema = Type.Array(
  Type.Object({
    slug: Type.String(),
    name: Type.String(),
    subcategories: Type.Array(subcategory_schema),
  }),
);
export type Pillar = Static<typeof taxonomy_schema>[number];

export interface Named {
  readonly category?: string | null | undefined;
  readonly subcategory?: string | null | undefined;
  readonly tags?: readonly string[] | undefined;
}

type Slugs = readonly { readonly slug: string }[];

export const listCategories = (all: Slugs): string => all.map(({ slug }) => slug).join(', ');

export const isCategory = (all: Slugs, slug: string): boolean =>
  all.some((one) => one.slug === slug);

export const isSubcategory = (pillars: readonly Pillar[], slug: string): boolean =>
  pillars.some(({ subcategories }) => isCategory(subcategories, slug));

/** Adds a missing #. A URL has to escape the # of a tag, so a query may leave it out. */
export const tagOf = (tag: string): string => (tag.startsWith('#') ? tag : `#${tag}`);

/** Returns null if all names exist and the subcategory belongs to the category. */
export const findUnknown = (
  pillars: readonly Pillar[],
  { category = null, subcategory = null, tags = [] }: Named,
  where: 'body' | 'query',
): Fault | null => {
  const pillar = pillars.find(({ slug }) => slug === category);
  if (category !== null && pillar === undefined) {
    const message = `"${category}" is not a category. Use one of ${listCategories(pillars)}.`;
    const fields = [{ path: `${where}.category`, message }];
    return refuse(taxonomy_faults.INVALID_CATEGORY, { message, fields });
  }
  if (
    subcategory !== null &&
    !isSubcategory(pillar === undefined ? pillars : [pillar], subcategory)
  ) {
    const rest =
      pillar === undefined
        ? '. GET /api/taxonomy lists them.'
        : ` of ${pillar.slug}. Use one of ${listCategories(pillar.subcategories)}.`;
    const message = `"${subcategory}" is not a subcategory${rest}`;
    const fields = [{ path: `${where}.subcategory`, message }];
    return refuse(taxonomy_faults.INVALID_SUBCATEGORY, { message, fields });
  }
  const known = new Set(pillars.flatMap((one) => one.subcategories.flatMap((sub) => sub.tags)));
  const unknown = tags.filter((tag) => !known.has(tag));
  if (unknown.length === 0) return null;
  const path = where === 'body' ? 'body.tags' : 'query.tag';
  return refuse(taxonomy_faults.INVALID_TAG, {
    message: `Unknown tags: ${unknown.join(', ')}. GET /api/taxonomy lists all tags.`,
    fields: unknown.map((tag) => ({ path, message: `${tag} is not in the taxonomy` })),
  });
};
