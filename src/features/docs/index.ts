export { front_links } from './discovery.js';
