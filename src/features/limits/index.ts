export { createLimitReader, type LimitParts } from './reader.js';
export { routes } from './routes.js';
export {
  countedBy,
  type LimitName,
  limit_table,
  makeWindowsOf,
  predictionsWindow,
} from './rules.js';
