import type { Deps } from '../../kit/deps.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { readChanges } from './store.js';

/**
 * Asks Postgres every second which agents have changed. So a process also learns of a change that
 * was made by hand, and of one whose process ended between its commit and telling the others.
 */
export interface Changes extends Service {
  /**
   * Whether every change since that time (`performance.now()`) has been told, but for those of the
   * last seconds.
   */
  coversSince(time_ms: number): boolean;
}

export const ask_every_ms = 1_000;
/** A turn may take a while where Postgres has much to do. */
const trust_ms = 5_000;

export const followChanges = (
  { sql, log }: Pick<Deps, 'sql' | 'log'>,
  onChange: (agent_id: string) => void,
  every_ms: number,
): Changes => {
  let since: string | null = null;
  /** In which transaction each agent changed that was told last: it may come again. */
  let told: ReadonlyMap<string, string> = new Map();
  let followed_from_ms = Number.POSITIVE_INFINITY;
  let known_until_ms = Number.NEGATIVE_INFINITY;
  const loop = makeLoop({
    ...{ name: 'agent-changes', log, every_ms, after_error_ms: every_ms },
    async turn() {
      const began_ms = performance.now();
      const { changed, next } = await readChanges(sql, since);
      for (const { id, changed_in } of changed) if (told.get(id) !== changed_in) onChange(id);
      told = new Map(changed.map(({ id, changed_in }) => [id, changed_in]));
      if (since === null) followed_from_ms = performance.now();
      since = next;
      known_until_ms = began_ms;
      return 'rest';
    },
  });
  return {
    ...loop,
    coversSince: (time_ms) =>
      time_ms >= followed_from_ms && performance.now() - known_until_ms < trust_ms,
  };
};
