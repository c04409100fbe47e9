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

const uuid_chars = 36;
const places = 6;

/**
 * An entry as it is carried: what places the event in one text, `id event question agent audience
 * category subcategory owner`, of which nothing is cut out before it is asked for. Thousands of
 * entries are under way at once, and most are asked for their kind and their question only.
 */
export class PackedEntry implements LogEntry {
  constructor(
    readonly offset: number,
    readonly head: string,
    readonly body: string,
  ) {}

  get id(): string {
    return this.head.slice(0, uuid_chars);
  }

  get event(): string {
    return this.head.slice(uuid_chars + 1, this.head.indexOf(' ', uuid_chars + 1));
  }

  get question_id(): string | null {
    return this.place(0);
  }

  get agent_id(): string | null {
    return this.place(1);
  }

  get audience_id(): string | null {
    return this.place(2);
  }

  get category(): string | null {
    return this.place(3);
  }

  get subcategory(): string | null {
    return this.place(4);
  }

  get owner_id(): string | null {
    return this.place(5);
  }

  private place(nth: number): string | null {
    const { head } = this;
    let from = head.indexOf(' ', uuid_chars + 1) + 1;
    for (let n = 0; n < nth; n += 1) from = head.indexOf(' ', from) + 1;
    const end = nth === places - 1 ? head.length : head.indexOf(' ', from);
    return from === end ? null : head.slice(from, end);
  }
}

/** As an entry of the stream: what places the event in one text, and its body in another. */
export const packEntry = (e: LogEntry): readonly [head: string, body: string] => {
  if (e instanceof PackedEntry) return [e.head, e.body];
  const { id, event, question_id, agent_id, audience_id, category, subcategory, owner_id } = e;
  const placed = [question_id, agent_id, audience_id, category, subcategory, owner_id];
  return [`${id} ${event} ${placed.map((place) => place ?? '').join(' ')}`, e.body];
};

/** The other way; null for what `packEntry` did not make. */
export const unpackEntry = (offset: number, head: string, body: string): LogEntry | null => {
  if (head[uuid_chars] !== ' ') return null;
  let at = uuid_chars;
  for (let n = 0; n < places; n += 1) {
    at = head.indexOf(' ', at + 1);
    if (at < 0) return null;
  }
  return head.includes(' ', at + 1) ? null : new PackedEntry(offset, head, body);
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
