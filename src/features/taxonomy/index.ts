export { routes } from './routes.js';
export { taxonomy_faults } from './schema.js';
export { createTaxonomy, type Taxonomy, type TaxonomyParts } from './store.js';
