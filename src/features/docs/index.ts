export { front_links, readExample } from './discovery.js';
export { anchorOf, guide_sections, listGuidePages, readGuideText, titleOf } from './guide.js';
