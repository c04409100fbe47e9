export { front_links } from './discovery.js';
export { anchorOf, listGuidePages, readGuideText, titleOf } from './guide.js';
