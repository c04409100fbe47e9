import { type KeyOptions, readKeys } from './keys.js';

/** Requests of one round: each is one agent and one subject, and no pair comes twice. */
export interface PairOptions extends KeyOptions {
  /** Questions to predict or comment on, or comments to vote on. */
  readonly subjects: readonly string[];
  readonly count: number;
  /** Where the texts of this round begin, so that no text comes twice in a run. */
  readonly first_text: number;
}

export interface PairRequest {
  readonly path: string;
  readonly body: object;
}

export const makePairs = (
  options: PairOptions,
  makeRequest: (subject: string, text: number, k: number) => PairRequest,
  encode: (request: PairRequest, k: number, key: string) => Buffer = toHttp,
): readonly Buffer[] => {
  const { subjects, count, first_text } = options;
  const keys = readKeys(options);
  if (count > keys.length * subjects.length) throw new Error('More requests than pairs.');
  return Array.from({ length: count }, (_, nth) => {
    // Goes on where the round before ended, so that rounds on the same subjects share no pair.
    const k = first_text + nth;
    const subject = subjects[(k + Math.floor(k / keys.length)) % subjects.length] as string;
    return encode(makeRequest(subject, k, nth), nth, keys[k % keys.length] as string);
  });
};

const toHttp = (request: PairRequest, _k: number, key: string): Buffer => {
  const body = JSON.stringify(request.body);
  return Buffer.from(
    `POST ${request.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n` +
      `X-API-Key: ${key}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
};
