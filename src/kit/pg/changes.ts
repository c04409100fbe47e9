import type { Deps } from '../deps.js';
import { makeLoop } from '../loop.js';
import type { Service } from '../service.js';
import { readChanges } from './changes-store.js';

/**
 * Asks Postgres every second which rows of a table have changed. So a process also learns of a
 * change that was made by hand, and of one whose process ended between its commit and telling the
 * others.
 */
export interface Changes extends Service {
  /**
   * Whether every change since that time (`performance.now()`) has been told, but for those of the
   * last seconds.
   */
  coversSince(time_ms: number): boolean;
}

export interface ChangesOptions {
  /** One with a trigger `note_change`. */
  readonly table: string;
  /** Told once of each change, of those that were found together in one call. */
  readonly onChanges: (ids: readonly string[]) => void;
  /** Told when every change from now on is told. */
  readonly onFollowed?: () => void;
  readonly every_ms?: number | undefined;
}

/** A turn may take a while where Postgres has much to do. */
const trust_ms = 5_000;

export const followChanges = (
  { sql, log }: Pick<Deps, 'sql' | 'log'>,
  { table, onChanges, onFollowed, every_ms = 1_000 }: ChangesOptions,
): Changes => {
  let since: string | null = null;
  /** In which transaction each row changed that was told last: it may come again. */
  let told: ReadonlyMap<string, string> = new Map();
  let followed_from_ms = Number.POSITIVE_INFINITY;
  let known_until_ms = Number.NEGATIVE_INFINITY;
  const loop = makeLoop({
    ...{ name: `${table}-changes`, log, every_ms, after_error_ms: every_ms },
    async turn() {
      const began_ms = performance.now();
      const { changed, next } = await readChanges(sql, table, since);
      const is_first = since === null;
      const fresh = changed.filter(({ id, changed_in }) => told.get(id) !== changed_in);
      told = new Map(changed.map(({ id, changed_in }) => [id, changed_in]));
      since = next;
      known_until_ms = began_ms;
      if (is_first) {
        followed_from_ms = performance.now();
        onFollowed?.();
      } else if (fresh.length > 0) {
        onChanges(fresh.map(({ id }) => id));
      }
      return 'rest';
    },
  });
  return {
    ...loop,
    coversSince: (time_ms) =>
      time_ms >= followed_from_ms && performance.now() - known_until_ms < trust_ms,
  };
};
