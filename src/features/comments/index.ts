export { setCommentHidden } from './hiding-store.js';
export type { CommentParts } from './post.js';
export { createCommenting } from './posting.js';
export { routes } from './routes.js';
export { comment_faults } from './schema.js';
