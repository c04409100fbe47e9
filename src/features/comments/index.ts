export { answerPost, type CommentParts, createCommenting, type PostRequest } from './posting.js';
export { type Ballot, setCommentHidden, voidVotes } from './store.js';
export { createVoting } from './voting.js';
