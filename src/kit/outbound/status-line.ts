/**
 * Reads the status of an HTTP/1 answer from its bytes as they come. Node's parser reports an answer
 * only when all its headers have come and are valid; a caller that needs the status alone gets it
 * from the status line.
 */

const status_line = /^HTTP\/1\.[01] (\d{3})(?: |$)/;
/** A longer line is invalid. */
const most_line_length = 8_192;

/** 101 is final: it ends HTTP on the connection. */
const isInformational = (status: number): boolean =>
  status >= 100 && status < 200 && status !== 101;

type Found = number | 'invalid' | null;

/**
 * Returns a function that takes the next bytes of an answer, until it returns the final status or
 * `invalid`; null means that more bytes are needed. It skips at most `most_informational` answers
 * of 1xx.
 */
export const createStatusReader = (most_informational: number): ((chunk: Buffer) => Found) => {
  let line = '';
  let skipped = 0;
  /** The lines up to the next empty one are headers of an answer of 1xx. */
  let are_headers = false;

  const takeLine = (text: string): Found => {
    if (are_headers || text === '') {
      are_headers &&= text !== '';
      return null;
    }
    const digits = status_line.exec(text)?.[1];
    if (digits === undefined) return 'invalid';
    const status = Number(digits);
    if (!isInformational(status)) return status;
    are_headers = true;
    skipped += 1;
    return skipped > most_informational ? 'invalid' : null;
  };

  return (chunk) => {
    const [first = '', ...more] = chunk.toString('latin1').split('\n');
    line += first;
    for (const next of more) {
      const found = takeLine(line.replace(/\r$/, ''));
      if (found !== null) return found;
      line = next;
    }
    return line.length > most_line_length ? 'invalid' : null;
  };
};
