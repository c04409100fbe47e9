/** `npm run test:fault [-- PATH…]`: the slow tests. See `run.ts`. */
process.argv.splice(2, 0, '--fault');
await import('./run.js');
