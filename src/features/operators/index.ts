export { createOperatorCheck } from './rechecking.js';
export { operator_schema } from './schema.js';
export { operatorColumns } from './store.js';
export { createOperators } from './verifying.js';
