import { makeCache } from '../../kit/cache.js';
import type { Deps } from '../../kit/deps.js';
import type { Fault } from '../../kit/fault.js';
import { describeError } from '../../kit/log.js';
import type { Db, Tx } from '../../kit/pg/client.js';
import { findUnknown, type Named, tagOf } from './rules.js';
import type { Pillar } from './schema.js';

/** Pillars, subcategories and tags are rows, read again once a minute. */

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

export interface Taxonomy {
  /** The whole taxonomy, at most a minute old. */
  read(): Promise<readonly Pillar[]>;
  /** As it was read last, without a wait; an older one is read again meanwhile. */
  latest(): readonly Pillar[];
  /** Null when the pillar, its subcategory and the tags exist, else the fault that says which. */
  check(names: Named): Promise<Fault | null>;
  /** The same for the names of a query. */
  checkQuery(
    query: Omit<Named, 'tags'> & { readonly tag?: string | undefined },
  ): ReturnType<Taxonomy['check']>;
  forget(): void;
}

export interface TaxonomyParts {
  readonly taxonomy: Taxonomy;
}

export const createTaxonomy = ({ sql, log }: Pick<Deps, 'sql' | 'log'>): Taxonomy => {
  const cache = makeCache<readonly Pillar[]>({ most: 1, ttl_ms: 60_000 });
  let latest: readonly Pillar[] = [];
  const read = async (): Promise<readonly Pillar[]> => {
    latest = await cache.get('', () => readTaxonomy(sql));
    return latest;
  };
  return {
    read,
    latest() {
      read().catch((error) => log.warn(describeError(error), 'taxonomy: could not be read'));
      return latest;
    },
    check: async (names) => findUnknown(await read(), names, 'body'),
    checkQuery: async ({ tag, ...names }) => {
      const tags = tag === undefined ? [] : [tagOf(tag)];
      return findUnknown(await read(), { ...names, tags }, 'query');
    },
    forget: () => cache.forget(''),
  };
};
