import { type Static, Type } from '@sinclair/typebox';
import { defineFaults } from '../../kit/fault.js';

export const taxonomy_faults = defineFaults({
  INVALID_CATEGORY: [400, 'validation', 'The category is not one of the pillars.'],
  INVALID_SUBCATEGORY: [400, 'validation', 'The subcategory does not belong to this category.'],
  INVALID_TAG: [400, 'validation', 'A tag is not in the taxonomy.'],
});

const subcategory_schema = Type.Object({
  slug: Type.String(),
  name: Type.String(),
  tags: Type.Array(Type.String()),
});

/** A bare array: existing clients read it so. */
export const taxonomy_schema = Type.Array(
  Type.Object({
    slug: Type.String(),
    name: Type.String(),
    subcategories: Type.Array(subcategory_schema),
  }),
);
export type Pillar = Static<typeof taxonomy_schema>[number];
