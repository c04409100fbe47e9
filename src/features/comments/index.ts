import { routes as comments_routes } from './routes.js';
import { routes as votes_routes } from './vote-routes.js';

export { type CommentParts, createCommenting } from './posting.js';
export { comment_faults } from './schema.js';
export { setCommentHidden, topThreads } from './store.js';
export type { VoteParts } from './vote-routes.js';
export { createVoting, voidVotes } from './vote-store.js';

export const routes = [...comments_routes, ...votes_routes];
