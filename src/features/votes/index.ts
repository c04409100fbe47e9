export { routes, type VoteParts } from './routes.js';
export { createVoting, voidVotes } from './store.js';
