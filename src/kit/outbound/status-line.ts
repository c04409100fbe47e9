/**
 * Finds the status of an HTTP/1 response that is broken. Node's parser reports a response only when
 * all its headers have come and are valid, but the status line alone decides whether a call was
 * successful.
 */

const status_line = /^HTTP\/1\.[01] (\d{3})(?: |$)/;

/** 101 is final: it ends HTTP on the connection. */
const isInformational = (status: number): boolean =>
  status >= 100 && status < 200 && status !== 101;

/**
 * Finds the final status in the first bytes of a response, after at most `max_informational` 1xx
 * responses. Null if the status line is missing, incomplete or invalid.
 */
export const findStatus = (bytes: Buffer, max_informational: number): number | null => {
  const lines = bytes.toString('latin1').split(/\r?\n/).slice(0, -1);
  let skipped = 0;
  let are_headers = false;
  for (const line of lines) {
    if (line === '') are_headers = false;
    if (line === '' || are_headers) continue;
    const digits = status_line.exec(line)?.[1];
    if (digits === undefined) return null;
    const status = Number(digits);
    if (!isInformational(status)) return status;
    skipped += 1;
    if (skipped > max_informational) return null;
    are_headers = true;
  }
  return null;
};
