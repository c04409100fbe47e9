import { routes as export_routes } from './export-routes.js';
import { routes as own_routes } from './routes.js';

export const routes = [...own_routes, ...export_routes];
