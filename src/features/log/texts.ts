import type { LogEntry } from '../events/index.js';

/** How events are written: the bytes of the record, with offset and id before them. */

export const eventText = ({ offset, id, body }: LogEntry): string =>
  `{"offset":${offset},"id":"${id}",${body.slice(1)}`;

/** One server-sent event; JSON has no line breaks, so its data is one line. */
export const sseText = (
  name: string | null,
  data: string,
  fields: { readonly id?: number; readonly retry_ms?: number } = {},
): string =>
  `${fields.retry_ms === undefined ? '' : `retry: ${fields.retry_ms}\n`}` +
  `${fields.id === undefined ? '' : `id: ${fields.id}\n`}` +
  `${name === null ? '' : `event: ${name}\n`}data: ${data}\n\n`;

/** An event of the log has no name, so that a listener for messages gets all of them. */
export const sseEvent = (entry: LogEntry): string =>
  sseText(null, eventText(entry), { id: entry.offset });
