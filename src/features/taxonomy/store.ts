import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { type Fault, refuse } from '../../kit/fault.js';
import type { Db, Tx } from '../../kit/pg/client.js';
import { type pillar_schema, taxonomy_faults } from './schema.js';

/** The taxonomy is data: pillars, subcategories and tags are rows, read again once a minute. */

export type Pillar = Static<typeof pillar_schema>;

export const readTaxonomy = async (db: Db): Promise<readonly Pillar[]> => db<Pillar[]>`
  select
    p.slug,
    p.name,
    (
      select coalesce(
        json_agg(
          json_build_object(
            'slug', s.slug,
            'name', s.name,
            'tags', (
              select coalesce(json_agg(t.tag order by t.tag), '[]'::json)
              from tags t
              where t.subcategory = s.slug
            )
          )
          order by s.position
        ),
        '[]'::json
      )
      from subcategories s
      where s.pillar = p.slug
    ) as subcategories
  from pillars p
  order by p.position`;

/** The tags that were not there before. */
export const addTags = async (tx: Tx, subcategory: string, tags: readonly string[]) => {
  const rows = await tx<{ tag: string }[]>`
    insert into tags (subcategory, tag)
    select ${subcategory}, unnest(${tags as string[]}::text[])
    on conflict do nothing
    returning tag`;
  return rows.map(({ tag }) => tag);
};

export interface Placement {
  readonly category: string;
  readonly subcategory: string | null;
  readonly tags: readonly string[];
}

export interface Taxonomy {
  /** The whole taxonomy, at most `fresh_ms` old. */
  read(): Promise<readonly Pillar[]>;
  /** Null when the pillar, its subcategory and the tags exist, else the fault that says which. */
  check(placement: Placement): Promise<Fault | null>;
  forget(): void;
}

export interface TaxonomyParts {
  readonly taxonomy: Taxonomy;
}

const fresh_ms = 60_000;

const listOf = (names: readonly string[]): string => names.join(', ');

const findFault = (pillars: readonly Pillar[], placement: Placement): Fault | null => {
  const pillar = pillars.find((p) => p.slug === placement.category);
  if (pillar === undefined) {
    const known = listOf(pillars.map((p) => p.slug));
    return refuse(taxonomy_faults.INVALID_CATEGORY, {
      message: `"${placement.category}" is not a category; use one of ${known}.`,
      fields: [{ path: 'body.category', message: `One of ${known}` }],
    });
  }
  const subs = pillar.subcategories;
  if (placement.subcategory !== null && !subs.some((s) => s.slug === placement.subcategory)) {
    const known = listOf(subs.map((s) => s.slug));
    return refuse(taxonomy_faults.INVALID_SUBCATEGORY, {
      message: `"${placement.subcategory}" is not a subcategory of ${pillar.slug}.`,
      fields: [{ path: 'body.subcategory', message: `One of ${known}` }],
    });
  }
  const tags = new Set(pillars.flatMap((p) => p.subcategories.flatMap((s) => s.tags)));
  const unknown = placement.tags.filter((tag) => !tags.has(tag));
  if (unknown.length === 0) return null;
  return refuse(taxonomy_faults.INVALID_TAG, {
    message: `Not in the taxonomy: ${listOf(unknown)}. GET /api/taxonomy lists the tags.`,
    fields: unknown.map((tag) => ({ path: 'body.tags', message: `${tag} is not known` })),
  });
};

export const createTaxonomy = ({ sql }: Pick<Deps, 'sql'>): Taxonomy => {
  let known: readonly Pillar[] | undefined;
  let read_at = 0;
  const read = async (): Promise<readonly Pillar[]> => {
    if (known === undefined || performance.now() - read_at > fresh_ms) {
      known = await readTaxonomy(sql);
      read_at = performance.now();
    }
    return known;
  };
  return {
    read,
    check: async (placement) => findFault(await read(), placement),
    forget() {
      known = undefined;
    },
  };
};
