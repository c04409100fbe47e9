/**
 * Reads one HTTP/1.1 answer at a time from a kept-alive connection: its status and, where `keep` is
 * asked for, its body. Answers must carry a content-length; a generator that understood more would
 * take time away from the service on the same machine.
 */
export interface AnswerReader {
  /** Takes what arrived. Returns the status once an answer is complete, else 0. */
  push(chunk: Buffer): number;
  /** Body of the answer that was completed last. */
  body(): string;
}

const head_end = Buffer.from('\r\n\r\n');
const spellings = ['content-length: ', 'Content-Length: '].map((name) => Buffer.from(name));

const findLength = (bytes: Buffer, end: number): number => {
  for (const name of spellings) {
    const at = bytes.indexOf(name);
    if (at === -1 || at > end) continue;
    let length = 0;
    for (let i = at + name.length; ; i++) {
      const digit = (bytes[i] ?? 0) - 48;
      if (digit < 0 || digit > 9) return length;
      length = length * 10 + digit;
    }
  }
  throw new Error('An answer has no content-length.');
};

export const makeAnswerReader = (): AnswerReader => {
  let pending: Buffer | undefined;
  let last: Buffer = Buffer.alloc(0);
  let body_at = 0;
  return {
    push(chunk) {
      const bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
      const end = bytes.indexOf(head_end);
      const total = end === -1 ? Number.POSITIVE_INFINITY : end + 4 + findLength(bytes, end);
      if (bytes.length < total) {
        // The socket's buffer is used again, so what waits must be a copy.
        pending = Buffer.from(bytes);
        return 0;
      }
      if (bytes.length > total) throw new Error('An answer came that nobody asked for.');
      pending = undefined;
      last = bytes;
      body_at = end + 4;
      return ((bytes[9] ?? 48) - 48) * 100 + ((bytes[10] ?? 48) - 48) * 10 + (bytes[11] ?? 48) - 48;
    },
    body: () => last.toString('utf8', body_at),
  };
};
