export { type ModelFamily, model_families, modelFamily } from './model-family.js';
export { routes } from './routes.js';
export * from './rules.js';
export { createTaxonomy, type Taxonomy, type TaxonomyParts } from './store.js';
