import type { Pillar } from '../../src/features/taxonomy/rules.js';

/** A taxonomy for tests of checks that need no store. */
export const pillars: readonly Pillar[] = [
  {
    slug: 'technology',
    name: 'Technology',
    subcategories: [
      { slug: 'models_architectures', name: 'Models & Architectures', tags: ['#LLM'] },
      { slug: 'data', name: 'Data', tags: ['#Datasets'] },
    ],
  },
  {
    slug: 'society',
    name: 'Society',
    subcategories: [{ slug: 'jobs_future_work', name: 'Jobs & Future of Work', tags: ['#Jobs'] }],
  },
];
