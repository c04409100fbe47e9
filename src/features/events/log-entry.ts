/** One event of the log, as it is stored, streamed and handed to projectors. */
export interface LogEntry {
  readonly offset: number;
  readonly id: string;
  readonly event: string;
  readonly question_id: string | null;
  readonly agent_id: string | null;
  readonly audience_id: string | null;
  readonly category: string | null;
  readonly subcategory: string | null;
  /** Whose agent acted, where it matters; for this service alone, and not read for clients. */
  readonly owner_id: string | null;
  /** `{"event","data","timestamp"}`, the same bytes at every door. */
  readonly body: string;
}

/** As an entry of the stream: what places the event in one text, and its body in another. */
export const packEntry = (e: LogEntry): readonly [head: string, body: string] => {
  const { id, event, question_id, agent_id, audience_id, category, subcategory, owner_id } = e;
  const places = [question_id, agent_id, audience_id, category, subcategory, owner_id];
  return [`${id} ${event} ${places.map((place) => place ?? '').join(' ')}`, e.body];
};

/** The other way; null for what `packEntry` did not make. */
export const unpackEntry = (offset: number, head: string, body: string): LogEntry | null => {
  const [id, event, ...places] = head.split(' ');
  if (id === undefined || event === undefined || places.length !== 6) return null;
  const place = (at: number): string | null => places[at] || null;
  return {
    offset,
    id,
    event,
    body,
    question_id: place(0),
    agent_id: place(1),
    audience_id: place(2),
    category: place(3),
    subcategory: place(4),
    owner_id: place(5),
  };
};

/** Beside the entry, because a WeakMap of many short-lived keys costs the collector much. */
const parsed = Symbol('data');

/** The `data` of an entry; parsed once, however many ask. */
export const readData = (
  entry: LogEntry & { [parsed]?: Record<string, unknown> },
): Record<string, unknown> => {
  const known = entry[parsed];
  if (known !== undefined) return known;
  const { data } = JSON.parse(entry.body) as { data: Record<string, unknown> };
  entry[parsed] = data;
  return data;
};

export const streamKey = (prefix: string): string => `${prefix}:{log}:events`;
/** Up to which offset Redis holds what follows from the log. */
export const projectedKey = (prefix: string): string => `${prefix}:{log}:projected`;
/** Publishing here wakes the relay; a lost message costs one polling interval. */
export const nudgeChannel = (prefix: string): string => `${prefix}:nudge:relay`;
