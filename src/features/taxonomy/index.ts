export { type ModelFamily, model_families, modelFamily } from './model-family.js';
export { routes } from './routes.js';
export { isCategory, isSubcategory, listCategories, tagOf } from './rules.js';
export { type Pillar, taxonomy_faults } from './schema.js';
export { createTaxonomy, type Taxonomy, type TaxonomyParts } from './store.js';
