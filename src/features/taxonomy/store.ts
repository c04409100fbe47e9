import type { Db, Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { makeCache } from '../../kit/cache.js';
import { describeError } from '../../kit/log.js';
import { findUnknown, type Named, type Pillar, tagOf } from './rules.js';

/** Pillars, subcategories and tags are stored as rows and cached for a minute. */

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

/** Adds tags. Returns the tags that did not exist yet. */
export const addTags = async (tx: Tx, subcategory: string, tags: readonly string[]) => {
  const rows = await tx<{ tag: string }[]>`
    insert into tags (subcategory, tag)
    select ${subcategory}, unnest(${tags as string[]}::text[])
    on conflict do nothing
    returning tag`;
  return rows.map(({ tag }) => tag);
};

export type Taxonomy = ReturnType<typeof createTaxonomy>;

export interface TaxonomyParts {
  readonly taxonomy: Taxonomy;
}

export const createTaxonomy = ({ sql, log }: Pick<Deps, 'sql' | 'log'>) => {
  const cache = makeCache<readonly Pillar[]>({ most: 1, ttl_ms: 60_000 });
  let latest: readonly Pillar[] = [];
  /** Returns the whole taxonomy, at most a minute old. */
  const read = async (): Promise<readonly Pillar[]> => {
    latest = await cache.get('', () => readTaxonomy(sql));
    return latest;
  };
  return {
    read,
    /** Returns the taxonomy as last read, without waiting, and refreshes it in the background. */
    latest() {
      read().catch((error) => log.warn(describeError(error), 'taxonomy: could not be read'));
      return latest;
    },
    /** Returns null if all names exist, else a fault that says which one does not. */
    check: async (names: Named) => findUnknown(await read(), names, 'body'),
    /** Like `check`, for the names in a query. */
    async checkQuery({
      tag,
      ...names
    }: Omit<Named, 'tags'> & { readonly tag?: string | undefined }) {
      const tags = tag === undefined ? [] : [tagOf(tag)];
      return findUnknown(await read(), { ...names, tags }, 'query');
    },
    forget: () => cache.forget(''),
  };
};
