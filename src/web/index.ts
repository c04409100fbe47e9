import type { Route } from '../http/route.js';
import { assets, icons } from './assets.js';
import { home } from './home.js';
import type { PageDeps } from './page-route.js';

export { makeFaultPage } from './error.js';
export type { PageDeps } from './page-route.js';

/** The pages for people. */
export const routes: readonly Route<PageDeps>[] = [home, assets, ...icons];
