import type { Bench } from './frame/types.js';

/** Every bench by its name; loaded only when it is asked for. */
export const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  originality: async () => (await import('./originality.js')).originality,
  calls: async () => (await import('./calls.js')).calls,
  comments: async () => (await import('./comments.js')).comments,
  export: async () => (await import('./export.js')).exporting,
  external: async () => (await import('./external.js')).external,
  fanout: async () => (await import('./fanout.js')).fanout,
  history: async () => (await import('./history.js')).history,
  pictures: async () => (await import('./pictures.js')).pictures,
  predict: async () => (await import('./predict.js')).predict,
  webhooks: async () => (await import('./webhooks.js')).webhooks,
  reads: async () => (await import('./reads.js')).reads,
  resolve: async () => (await import('./resolve.js')).resolve,
  slow: async () => (await import('./slow.js')).slow,
  sockets: async () => (await import('./sockets.js')).idle_sockets,
};
