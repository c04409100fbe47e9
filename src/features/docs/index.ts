export { front_links, readExample } from './discovery.js';
export { anchorOf, listGuidePages, listGuideSections, readGuideText, titleOf } from './guide.js';
export { groupPath, operationAnchor } from './reference.js';
