import type { Deps } from '../../http/deps.js';
import { makeCache } from '../../kit/cache.js';
import { describeError } from '../../kit/log.js';
import { foldName } from '../../kit/names.js';
import { readAdjusted, readAdjustedValues } from './adjusted-store.js';
import { max_in_redis, readLive, readLiveFigures } from './live.js';
import { type BoardClass, board_kinds, isWholeSlice, type MeanKind, type Slice } from './rules.js';
import { type Figures, type RunningMean, readFigures, readRunningMeans } from './scores-store.js';
import {
  type BoardPage,
  type BoardQuery,
  type BoardRow,
  kindsOf,
  readBoard,
  readNameKeys,
} from './store.js';

/** Boards as requests read them: from Redis, and from Postgres if Redis does not have them. */

/** The ranked rows of a board with the names, models and families that a search compares. */
interface NamedBoard extends Pick<BoardPage, 'coverage'> {
  readonly rows: readonly { readonly row: BoardRow; readonly name: string }[];
}

const shared_ms = 1_000;
const history_ms = 60_000;

/** Some rows of a board, of which more is read. */
interface Chosen {
  readonly of: BoardClass;
  readonly slice: Slice;
  readonly rows: readonly BoardRow[];
}

const isAfter = ({ key, agent_id }: BoardRow, after: BoardQuery['after']): boolean =>
  after === null || key > after.key || (key === after.key && agent_id > after.agent_id);

export const createBoards = ({ reads: sql, redis, log, config }: Deps) => {
  const prefix = config.REDIS_PREFIX;
  /** A read from Postgres scans all scores, so a page read within the last second is reused. */
  const pages = makeCache<BoardPage>({ most: 200, ttl_ms: shared_ms });
  const fromRedis = async <T>(read: () => Promise<T | null>): Promise<T | null> => {
    if (redis.status !== 'ready') return null;
    try {
      return await read();
    } catch (error) {
      log.debug(describeError(error), 'boards: Redis did not answer, reading from Postgres');
      return null;
    }
  };
  /** Reads a page of a board from Redis, or from Postgres if Redis does not have it. */
  const page = async (query: BoardQuery): Promise<BoardPage> => {
    if (query.kind === 'adjusted') return readAdjusted(sql, query);
    const found = await fromRedis(() => readLive(redis, prefix, query));
    return found ?? pages.get(JSON.stringify(query), () => readBoard(sql, query));
  };

  const named_boards = makeCache<NamedBoard>({ most: 8, ttl_ms: shared_ms });
  const readNamed = async (query: BoardQuery): Promise<NamedBoard> => {
    const whole = { ...query, limit: max_in_redis - 1, offset: 0, after: null };
    const { rows, coverage } = await page(whole);
    const ranked = rows.filter(({ rank }) => rank !== null);
    const names = await readNameKeys(
      sql,
      ranked.map(({ agent_id }) => agent_id),
    );
    const nameOf = ({ agent_id, detail }: BoardRow): string =>
      names.get(agent_id) ?? foldName(detail.name ?? '');
    return { coverage, rows: ranked.map((row) => ({ row, name: nameOf(row) })) };
  };

  const figures = makeCache<ReadonlyMap<string, Figures>>({ most: 200, ttl_ms: shared_ms });
  const readFiguresOf = async (chosen: Chosen): Promise<ReadonlyMap<string, Figures>> => {
    const { of, slice, rows } = chosen;
    const ids = rows.map(({ agent_id }) => agent_id);
    const found = await fromRedis(() => readLiveFigures(redis, { prefix, slice, ids }));
    const key = JSON.stringify([of, slice, ids]);
    return found ?? figures.get(key, () => readFigures(sql, chosen));
  };
  const histories = makeCache<readonly RunningMean[]>({ most: 50, ttl_ms: history_ms });
  return {
    page,
    /**
     * Reads a page of the ranked rows whose name, model or family contains the text, among the
     * first `max_in_redis` rows. All searches of a board within a second share one read of its rows and names.
     */
    async search(query: BoardQuery, text: string): Promise<BoardPage> {
      const { kind, of, slice, limit, offset, after } = query;
      const key = JSON.stringify([kind, of, slice]);
      const { rows, coverage } = await named_boards.get(key, () => readNamed(query));
      const wanted = foldName(text);
      const found = rows.flatMap(({ row, name }) => (name.includes(wanted) ? [row] : []));
      const rest = found.filter((row) => isAfter(row, after));
      return { total: found.length, rows: rest.slice(offset, offset + limit + 1), coverage };
    },
    /** Reads the values of these rows on all boards of the class and slice, by id. */
    async figures(chosen: Chosen): Promise<ReadonlyMap<string, Figures>> {
      const { of, slice, rows } = chosen;
      const [found, adjusted] = await Promise.all([
        readFiguresOf(chosen),
        isWholeSlice(slice) ? readAdjustedValues(sql, of, rows) : undefined,
      ]);
      const kinds: readonly string[] = kindsOf(of, board_kinds);
      return new Map(
        rows.map(({ agent_id }) => {
          const own = Object.entries(found.get(agent_id) ?? {});
          const shown = Object.fromEntries(own.filter(([kind]) => kinds.includes(kind)));
          const value = adjusted?.get(agent_id);
          return [agent_id, value === undefined ? shown : { ...shown, adjusted: value }];
        }),
      );
    },
    /** Reads the means of these rows over time, at most once a minute until one of them changes. */
    async history(by: MeanKind, chosen: Chosen): Promise<readonly RunningMean[]> {
      return histories.get(JSON.stringify([by, chosen]), () => readRunningMeans(sql, by, chosen));
    },
  };
};
export type Boards = ReturnType<typeof createBoards>;
