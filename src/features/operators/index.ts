export { createOperatorCheck } from './rechecking.js';
export { operatorColumns } from './store.js';
export { createOperators } from './verifying.js';
