export { createOperatorCheck } from './rechecking.js';
export { directory_path, directory_type, signature_tag, thumbprintOf } from './rules.js';
export { operator_schema } from './schema.js';
export { operatorColumns } from './store.js';
export { createOperators } from './verifying.js';
