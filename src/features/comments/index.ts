export { type CommentParts, createCommenting } from './posting.js';
export { routes, type VoteParts } from './routes.js';
export { comment_faults } from './schema.js';
export { setCommentHidden } from './store.js';
export { createVoting, voidVotes } from './voting-store.js';
