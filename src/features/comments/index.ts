export { answerPost, type CommentParts, createCommenting, type PostRequest } from './posting.js';
export { routes, type VoteParts } from './routes.js';
export { comment_faults } from './schema.js';
export { type Ballot, setCommentHidden, voidVotes } from './store.js';
export { createVoting } from './voting.js';
