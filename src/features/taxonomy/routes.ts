import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { reply, routeFor } from '../../http/route.js';
import { adminName, recordAct } from '../audit/index.js';
import { taxonomy_faults, taxonomy_schema } from './rules.js';
import { addTags, type TaxonomyParts } from './store.js';

const route = routeFor<Deps & TaxonomyParts>();

const getTaxonomy = route({
  id: 'getTaxonomy',
  method: 'GET',
  path: '/api/taxonomy',
  summary: 'All pillars with their subcategories and tags',
  tag: 'taxonomy',
  auth: 'public',
  returns: { 200: taxonomy_schema },
  cacheable: true,
  handle: async (_ctx, { taxonomy }) => reply(200, await taxonomy.read()),
});

const addTaxonomyTags = route({
  id: 'addTaxonomyTags',
  method: 'POST',
  path: '/api/admin/taxonomy/tags',
  summary: 'Add tags to a subcategory',
  tag: 'taxonomy',
  auth: 'admin',
  body: Type.Object({
    subcategory: Type.String({ maxLength: 60 }),
    tags: Type.Array(Type.String({ pattern: '^#[A-Za-z0-9_]{1,40}$' }), {
      minItems: 1,
      maxItems: 50,
    }),
  }),
  returns: { 200: taxonomy_schema },
  stores_answer: 'after',
  faults: [taxonomy_faults.INVALID_SUBCATEGORY],
  handle: async ({ body, caller }, { sql, taxonomy, clock }) => {
    const { subcategory } = body;
    const unknown = await taxonomy.check({ subcategory });
    if (unknown !== null) return unknown;
    await sql.begin(async (tx) => {
      const tags = await addTags(tx, subcategory, body.tags);
      if (tags.length === 0) return;
      await recordAct(tx, {
        admin: adminName(caller),
        act: 'taxonomy.add_tags',
        details: { tags },
        at: clock(),
        subject: { kind: 'subcategory', id: subcategory },
      });
    });
    taxonomy.forget();
    return reply(200, await taxonomy.read());
  },
});

export const routes = [getTaxonomy, addTaxonomyTags];
