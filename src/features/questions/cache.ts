import type { Deps } from '../../kit/deps.js';
import { makeGather } from '../../kit/gather.js';
import { followChanges } from '../../kit/pg/changes.js';
import type { Service } from '../../kit/service.js';
import { whyNotOpen } from './rules.js';
import { type NumberedQuestion, type QuestionRow, readNewestOpen, readQuestions } from './store.js';

/**
 * Questions in the memory of an api process, for the checks before a prediction. The commit checks
 * status and times again under the question's lock, and the rest stands while a question is open,
 * so a copy may be a little old: a question that takes predictions is believed while its changes
 * are followed, and for moments where they are not; any other answer only for the blink in which a
 * burst of calls asks the same thing. So every process sees at once that a question is reopened or
 * closes later, and one that is closed meanwhile is refused by the commit.
 *
 * What was made or changed is read before somebody asks for it, and so are the newest questions
 * when a process starts: the first predictions on a question come in rushes, and whoever waits for
 * its row misses the batches of the others.
 */

type Cached = NumberedQuestion | undefined;

export interface QuestionCache extends Service {
  get(id: string): Cached | Promise<Cached>;
  forget(id: string): void;
}

export interface QuestionCacheOptions {
  /** Told of every question that this process forgets because it changed it. */
  readonly onForget?: (id: string) => void;
  readonly changes_every_ms?: number;
}

interface Entry {
  readonly row: Cached;
  /** When its reading began; something may have changed since where it is not known. */
  readonly at_ms: number;
}

const unfollowed_ms = 2_000;
const blink_ms = 20;
const most = 20_000;
/** Of those that are read together. */
const most_read = 200;
/** Of those that are read before somebody asks for them, at a start or after a change. */
const most_ahead = 2_000;

/** The rows at hand. */
const makeRows = (sql: Deps['sql']) => {
  /** Those that were read first come first. */
  const known = new Map<string, Entry>();
  /** What changed since the reading under way began: there is one at a time. */
  const changed = new Set<string>();

  const keep = (id: string, entry: Entry): void => {
    known.delete(id);
    if (known.size >= most) known.delete(known.keys().next().value as string);
    known.set(id, entry);
  };

  const readOnce = async (ids: readonly string[]): Promise<Cached[]> => {
    changed.clear();
    const began_ms = performance.now();
    const rows = new Map((await readQuestions(sql, ids)).map((row) => [row.id, row]));
    return ids.map((id) => {
      const row = rows.get(id);
      // What was read while it changed may be from before the change.
      keep(id, { row, at_ms: changed.has(id) ? Number.NEGATIVE_INFINITY : began_ms });
      return row;
    });
  };

  return {
    get: (id: string): Entry | undefined => known.get(id),
    drop(id: string): void {
      known.delete(id);
    },
    /** What is being read is read again; what is at hand stays. */
    noteChanges(ids: readonly string[]): void {
      for (const id of ids) changed.add(id);
    },
    // One after the other: what is new to a process comes in rushes, and the first of a rush, read
    // by themselves, would cost as much as all others together.
    read: makeGather<Cached>({
      ...{ most: most_read, lanes: 1 },
      async read(ids) {
        const rows = await readOnce(ids);
        return ids.some((id) => changed.has(id)) ? readOnce(ids) : rows;
      },
    }),
  };
};

export const createQuestionCache = (
  deps: Pick<Deps, 'sql' | 'clock' | 'log'>,
  { onForget, changes_every_ms: every_ms }: QuestionCacheOptions = {},
): QuestionCache => {
  const { sql, clock } = deps;
  const rows = makeRows(sql);

  /** In pieces, so that whoever asks meanwhile waits for one of them and not for all. */
  const readAhead = async (ids: readonly string[]): Promise<void> => {
    for (const id of ids.slice(most_ahead)) rows.drop(id);
    const some = ids.slice(0, most_ahead);
    for (let at = 0; at < some.length; at += most_read) {
      const piece = some.slice(at, at + most_read);
      // Whoever asks for one that could not be read meets the error.
      await Promise.all(piece.map((id) => rows.read(id).catch(() => rows.drop(id))));
    }
  };

  const followed = followChanges(deps, {
    ...{ table: 'questions', every_ms },
    onChanges(ids) {
      // The old rows stand until the new ones are there: nobody waits for a reading.
      rows.noteChanges(ids);
      void readAhead(ids);
    },
    onFollowed() {
      readNewestOpen(sql, most_ahead).then(readAhead, () => undefined);
    },
  });

  const takesPredictions = (row: QuestionRow | undefined): boolean =>
    row !== undefined && whyNotOpen(row, clock()) === null;

  const isBelieved = ({ row, at_ms }: Entry): boolean => {
    const age_ms = performance.now() - at_ms;
    if (age_ms < blink_ms) return true;
    if (!takesPredictions(row)) return false;
    return age_ms < unfollowed_ms || followed.coversSince(at_ms);
  };

  return {
    name: 'questions',
    get(asked) {
      const id = asked.toLowerCase();
      const hit = rows.get(id);
      return hit !== undefined && isBelieved(hit) ? hit.row : rows.read(id);
    },
    forget(asked) {
      const id = asked.toLowerCase();
      rows.noteChanges([id]);
      rows.drop(id);
      onForget?.(id);
    },
    start: followed.start,
    stop: followed.stop,
  };
};
