import { randomBytes } from 'node:crypto';
import { createSealer as createAnySealer, type Sealer } from '../../kit/sealing.js';

export type { Sealer } from '../../kit/sealing.js';

/** Secrets at rest, each bound to the id of its webhook. */
export const createSealer = (secret_key: string): Sealer =>
  createAnySealer(secret_key, 'prediction-forum webhook secrets 1');

/** 64 hexadecimal characters. */
export const makeSecret = (): string => randomBytes(32).toString('hex');
