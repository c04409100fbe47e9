import { routes as health_routes } from './health.js';
import { routes as site_routes } from './site.js';

export { front_links } from './discovery.js';
export type { HealthParts } from './health.js';
export { createSite, type DocsParts } from './site.js';

export const routes = [...health_routes, ...site_routes];
