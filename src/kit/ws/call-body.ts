/**
 * Finds the text of the member `body` in the text of a frame: what is hashed and compared of a call
 * are the bytes its caller wrote, as over HTTP, and not another spelling of the same value.
 */

const quote = 0x22;
const backslash = 0x5c;

/** Where the text that begins at `at` ends: behind its closing quote. */
const endOfText = (json: string, at: number): number => {
  for (let end = json.indexOf('"', at + 1); ; end = json.indexOf('"', end + 1)) {
    let slashes = 0;
    while (json.charCodeAt(end - 1 - slashes) === backslash) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
};

const ends_scalar = /[,}\]\s]/g;

const endOfScalar = (json: string, at: number): number => {
  ends_scalar.lastIndex = at;
  return ends_scalar.exec(json)?.index ?? json.length;
};

/** Quotes and brackets are all that matters inside of an object or an array. */
const endOfNested = (json: string, at: number): number => {
  let depth = 0;
  for (let i = at; ; ) {
    const code = json.charCodeAt(i);
    if (code === quote) {
      i = endOfText(json, i);
      continue;
    }
    i += 1;
    if (code === 0x7b || code === 0x5b) depth += 1;
    else if (code === 0x7d || code === 0x5d) {
      depth -= 1;
      if (depth === 0) return i;
    }
  }
};

const endOfValue = (json: string, at: number): number => {
  const code = json.charCodeAt(at);
  if (code === quote) return endOfText(json, at);
  return code === 0x7b || code === 0x5b ? endOfNested(json, at) : endOfScalar(json, at);
};

const skipSpace = (json: string, at: number): number => {
  let i = at;
  while (json.charCodeAt(i) <= 0x20) i += 1;
  return i;
};

/** `json` is known to be the text of an object; '' when it has no body. */
export const bodyTextOf = (json: string): string => {
  let body = '';
  let at = skipSpace(json, skipSpace(json, 0) + 1);
  while (json.charCodeAt(at) === quote) {
    const name_end = endOfText(json, at);
    const name = json.slice(at, name_end);
    const start = skipSpace(json, skipSpace(json, name_end) + 1);
    const end = endOfValue(json, start);
    // As the parser does: a name may be spelt with escapes, and the last of equal names counts.
    if (name === '"body"' || (name.includes('\\') && JSON.parse(name) === 'body')) {
      body = json.slice(start, end);
    }
    at = skipSpace(json, skipSpace(json, end) + 1);
  }
  return body;
};
