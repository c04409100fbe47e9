export { setCommentHidden } from './hiding-store.js';
export type { CommentParts } from './post.js';
export { createCommenting } from './posting.js';
export { createRankKeeper } from './ranking.js';
export { routes } from './routes.js';
export { comment_faults } from './schema.js';
export { topThreads } from './top-store.js';
