import type { Deps } from '../../kit/deps.js';
import type { Fault } from '../../kit/fault.js';
import { describeError } from '../../kit/log.js';
import type { Db, Tx } from '../../kit/pg/client.js';
import { findUnknown, tagOf } from './rules.js';
import type { Pillar } from './schema.js';

/** The taxonomy is data: pillars, subcategories and tags are rows, read again once a minute. */

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

/** What a query narrows by. */
export interface PlacesQuery {
  readonly category?: string | undefined;
  readonly subcategory?: string | undefined;
  readonly tag?: string | undefined;
}

export interface Taxonomy {
  /** The whole taxonomy, at most `fresh_ms` old. */
  read(): Promise<readonly Pillar[]>;
  /** As it was read last, without a wait; where that is long ago it is read again meanwhile. */
  latest(): readonly Pillar[];
  /** Null when the pillar, its subcategory and the tags exist, else the fault that says which. */
  check(placement: Placement): Promise<Fault | null>;
  /** The same for what a query names. */
  checkQuery(query: PlacesQuery): Promise<Fault | null>;
  forget(): void;
}

export interface TaxonomyParts {
  readonly taxonomy: Taxonomy;
}

const fresh_ms = 60_000;

export const createTaxonomy = ({ sql, log }: Pick<Deps, 'sql' | 'log'>): Taxonomy => {
  let known: readonly Pillar[] = [];
  let read_at = Number.NEGATIVE_INFINITY;
  let is_reading = false;
  const isFresh = (): boolean => performance.now() - read_at <= fresh_ms;
  const read = async (): Promise<readonly Pillar[]> => {
    if (!isFresh()) {
      known = await readTaxonomy(sql);
      read_at = performance.now();
    }
    return known;
  };
  const readAgain = async (): Promise<void> => {
    is_reading = true;
    try {
      await read();
    } catch (error) {
      log.warn(describeError(error), 'taxonomy: could not be read');
    } finally {
      is_reading = false;
    }
  };
  return {
    read,
    latest() {
      if (!isFresh() && !is_reading) void readAgain();
      return known;
    },
    check: async (placement) => findUnknown(await read(), placement, 'body'),
    checkQuery: async ({ category, subcategory, tag }) => {
      const tags = tag === undefined ? [] : [tagOf(tag)];
      return findUnknown(await read(), { category, subcategory, tags }, 'query');
    },
    forget() {
      read_at = Number.NEGATIVE_INFINITY;
    },
  };
};
