import { createHash } from 'node:crypto';

/** Entity tags and `If-None-Match`: RFC 9110, 8.8.3 and 13.1.2. */

/** The tag of a body; weak, because one tag stands for every content coding of it. */
export const etagOf = (body: string | Uint8Array): string =>
  `W/"${createHash('sha1').update(body).digest('base64url')}"`;

/** What two tags are compared by: what is between the quotes, whether they are weak or not. */
const opaqueOf = (tag: string): string => (tag.startsWith('W/') ? tag.slice(2) : tag);

const listed = /[\t ]*(?:,[\t ]*)*(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")[\t ]*(?:,|$)/y;

/**
 * Whether a client that says `If-None-Match: wanted` has this already, by weak comparison. A value
 * that is no list of tags matches nothing from where it goes wrong.
 */
export const matchesEtag = (wanted: string, etag: string): boolean => {
  if (wanted === '') return false;
  if (wanted === etag) return true;
  if (wanted.trim() === '*') return true;
  const opaque = opaqueOf(etag);
  listed.lastIndex = 0;
  for (let found = listed.exec(wanted); found !== null; found = listed.exec(wanted)) {
    if (found[1] === opaque) return true;
  }
  return false;
};
