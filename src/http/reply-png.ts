import { BusyError } from '../kit/cache.js';
import { common_faults, type Fault, refuse } from '../kit/fault.js';
import type { PngJob, PngParts } from '../kit/svg-png.js';
import { picture_headers, type Reply, replyRaw } from './route.js';

/** Replies with a PNG, or with UNAVAILABLE if too many pictures wait to be drawn. */
export const replyPng = async (
  { pngs }: PngParts,
  client: string,
  job: PngJob,
): Promise<Reply | Fault> => {
  try {
    return replyRaw('image/png', await pngs.render(client, job), picture_headers);
  } catch (error) {
    if (!(error instanceof BusyError)) throw error;
    return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
  }
};
