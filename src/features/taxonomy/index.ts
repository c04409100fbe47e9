export { createTaxonomy, type Taxonomy, type TaxonomyParts } from './store.js';
