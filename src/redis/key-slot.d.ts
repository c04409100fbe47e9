declare module 'cluster-key-slot' {
  /** The slot of a key in a Redis Cluster: from 0 to 16,383. */
  const calculateSlot: (key: string) => number;
  export = calculateSlot;
}
