/** One event of the log, as it is stored, streamed and passed to projectors. */
export interface LogEntry {
  readonly offset: number;
  readonly id: string;
  readonly event: string;
  readonly question_id: string | null;
  readonly agent_id: string | null;
  readonly audience_id: string | null;
  readonly category: string | null;
  readonly subcategory: string | null;
  /** The owner of the acting agent, if it matters. For internal use; never sent to clients. */
  readonly owner_id: string | null;
  /** `{"event","data","timestamp"}`, with the same bytes on every transport. */
  readonly body: string;
}

/**
 * Packs an event into a stream entry of two texts. The first is `id event question agent audience
 * category subcategory owner`, in which an empty field means null. The second is the body.
 */
export const packEntry = (entry: LogEntry): readonly [head: string, body: string] => {
  const { id, event, question_id, agent_id, audience_id, category, subcategory, owner_id } = entry;
  const ids = [question_id, agent_id, audience_id, category, subcategory, owner_id];
  return [[id, event, ...ids.map((one) => one ?? '')].join(' '), entry.body];
};

type Id = string | null;

/** Reverses `packEntry`; null if `packEntry` did not make `head`. */
export const unpackEntry = (offset: number, head: string, body: string): LogEntry | null => {
  const parts = head.split(' ');
  const [id = '', event = '', ...ids] = parts;
  if (parts.length !== 8 || id.length !== 36) return null;
  const [question_id, agent_id, audience_id, category, subcategory, owner_id] = ids.map(
    (one) => one || null,
  ) as [Id, Id, Id, Id, Id, Id];
  const scope = { question_id, agent_id, audience_id, category, subcategory, owner_id };
  return { offset, id, event, ...scope, body };
};

const parsed = Symbol('data');

/** Returns the `data` of an entry. It is parsed only once. */
export const readData = (
  entry: LogEntry & { [parsed]?: Record<string, unknown> },
): Record<string, unknown> => {
  const known = entry[parsed];
  if (known !== undefined) return known;
  const { data } = JSON.parse(entry.body) as { data: Record<string, unknown> };
  entry[parsed] = data;
  return data;
};

/** Returns an event as text: the bytes of the record, preceded by offset and id. */
export const eventText = ({ offset, id, body }: Pick<LogEntry, 'offset' | 'id' | 'body'>): string =>
  `{"offset":${offset},"id":"${id}",${body.slice(1)}`;

/** Bodies end with their time: `…,"timestamp":"2026-01-31T12:00:00.000Z"}`. */
export const timeOf = ({ body }: LogEntry): string => body.slice(-26, -2);

export const streamKey = (prefix: string): string => `${prefix}:{log}:events`;
/** Publishing here wakes the relay. If the message is lost, the relay polls within one interval. */
export const wakeUpChannel = (prefix: string): string => `${prefix}:nudge:relay`;
