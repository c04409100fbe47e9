export { type CommentParts, createCommenting } from './posting.js';
export { routes } from './routes.js';
export { comment_faults } from './schema.js';
export { setCommentHidden, topThreads } from './store.js';
