export { type CommentParts, createCommenting } from './posting.js';
export { routes, type VoteParts } from './routes.js';
export { comment_faults } from './schema.js';
export { setCommentHidden, voidVotes } from './store.js';
export { createVoting } from './voting.js';
