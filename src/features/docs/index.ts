export { front_links } from './discovery.js';
export { anchorOf, guide_sections, listGuidePages, readGuideText, titleOf } from './guide.js';
