import type { makePause } from '../../kit/loop.js';
import { fromPercent, whole_bp } from '../../kit/percent.js';
import { loadScript, type RedisClient } from '../../redis/client.js';
import { prediction_placed, prediction_revised } from '../events/catalogue.js';
import { tagOf } from '../events/index.js';
import { type LogEntry, readData } from '../events/log-entry.js';
import { readShownCdf } from '../predictions/cdf-input.js';
import { givenByCdf, number_parts } from './numbers.js';
import { chancesIn, logOdds } from './pool.js';
import { type Forecast, givenBy, type Tally } from './rules.js';

/**
 * A question's tally counts the latest forecast of each prediction. It is a Redis hash of whole
 * numbers. `side` is y, n or an option's index, and `size` is the owner's number of predictions:
 *
 *   family|side|size|n     predictions
 *   family|side|size|v     sum of their values
 *   family|side|size|x     sum of their log odds
 *   value                  how many predictions state it
 *   family:2,family:1      owners with these numbers of predictions from these families
 *   family|option          sum of the family's shares for the option, or for a part of a number
 *   family|option|size     with options: sum of these predictions' log odds; missing if it is 0
 *   option/share           how many predictions give the option this share, in basis points
 *   o, t                   offset and time of the last counted forecast
 *
 * A second hash, which only scripts read, has each owner's predictions. If an owner predicts again,
 * the earlier predictions move to the cells of the next size. A revision replaces one entry.
 */

const setScript = loadScript('tally-set-2.lua');

/** The 5 in the key is the version of the format. */
export const tallyKey = (prefix: string, question_id: string): string =>
  `${prefix}:{${tagOf(question_id)}}:tally:5:${question_id}`;
export const tallyKeys = (prefix: string, question_id: string): readonly string[] => {
  const key = tallyKey(prefix, question_id);
  return [key, `${key}:owners`];
};

/**
 * Writes a prediction as text without blanks: `family|side|value|log odds`. With options, the log
 * odds are 0, and then come the log odds and the shares of all options: `|x,x,x|share,share,share`.
 */
export const saidIn = ({ family, yes, option, value, given }: Forecast): string => {
  if (option === null) return `${family}|${yes ? 'y' : 'n'}|${value}|${logOdds(value)}`;
  const said = `${family}|${option}|${value}|0`;
  if (given === null || given.length === number_parts) return said;
  const chances = chancesIn(given);
  return `${said}|${chances.map(logOdds).join(',')}|${chances.join(',')}`;
};

/** Returns the amounts that a prediction adds to the fields; its owner has `size` predictions. */
export const fieldsOf = (said: string, size: number): readonly (readonly [string, number])[] => {
  const [family, side, value, log_odds, option_odds, chances] = said.split('|');
  const cell = `${family}|${side}|${size}`;
  const listOf = (text = ''): readonly string[] => (text === '' ? [] : text.split(','));
  return [
    [`${cell}|n`, 1],
    [`${cell}|v`, Number(value)],
    [`${cell}|x`, Number(log_odds)],
    [value as string, 1],
    ...listOf(option_odds).map((x, n) => [`${family}|${n}|${size}`, Number(x)] as const),
    ...listOf(chances).map((chance, n) => [`${n}/${chance}`, 1] as const),
  ];
};

const isOptionOdds = (field: string): boolean => field.split('|').length === 3;

/** Returns the field for owners whose predictions are from these families. */
export const mixField = (families: Iterable<string>): string => {
  const counts = new Map<string, number>();
  for (const family of families) counts.set(family, (counts.get(family) ?? 0) + 1);
  return [...counts]
    .map(([family, count]) => `${family}:${count}`)
    .sort()
    .join(',');
};

const forecast_events: readonly string[] = [prediction_placed.name, prediction_revised.name];

/** Returns whether an event can change the consensus of its question. */
export const movesConsensus = ({ event }: Pick<LogEntry, 'event'>): boolean =>
  forecast_events.includes(event);

/** Reads a forecast from an event. `options` are the options of its question. */
const readForecast = (
  stated: Readonly<Record<string, unknown>>,
  family: string,
  options: readonly string[],
): Forecast => {
  const points = stated['cdf'] as Parameters<typeof readShownCdf>[0] | undefined;
  if (points !== undefined) {
    const given = givenByCdf(readShownCdf(points));
    return { family, yes: null, option: 0, value: whole_bp / 2, given };
  }
  const index = stated['option_index'];
  const option = typeof index === 'number' ? index : null;
  const value = fromPercent(Number(stated[option === null ? 'probability' : 'confidence']));
  const named = stated['probabilities'] as Readonly<Record<string, number>> | null | undefined;
  const shares = named == null ? null : options.map((name) => fromPercent(Number(named[name])));
  return {
    family,
    yes: option === null ? stated['prediction'] === true : null,
    option,
    value,
    given: givenBy({ option, value }, shares, options.length),
  };
};

/** Returns the forecast of an event, and the one that it replaces (null if it is the first). */
export const forecastsIn = (entry: LogEntry, options: readonly string[]) => {
  const data = readData(entry);
  const family = String(data['model_family']);
  const previous = data['previous'] as Readonly<Record<string, unknown>> | undefined;
  return {
    now: readForecast(data, family, options),
    before: previous === undefined ? null : readForecast(previous, family, options),
  };
};

export interface Counted extends Pick<Tally, 'offset' | 'updated_at'> {
  readonly question_id: string;
  /** The number in each field of the hash. */
  readonly cells: ReadonlyMap<string, number>;
  /** Each owner's predictions, as `saidIn` writes them. */
  readonly owners: ReadonlyMap<string, readonly string[]>;
}

type Owned = Forecast & { readonly owner: string };
type Sums = Pick<Counted, 'cells' | 'owners'>;

/** Counts the latest forecast of each prediction. Needs all predictions of every owner. */
export const makeCounter = () => {
  const cells = new Map<string, number>();
  const owners = new Map<string, string[]>();
  const sums = new Map<string, number[]>();
  const add = (field: string, by: number): void => {
    cells.set(field, (cells.get(field) ?? 0) + by);
  };
  const removeEmpty = (): void => {
    for (const [field, sum] of cells) if (sum === 0 && isOptionOdds(field)) cells.delete(field);
  };
  return {
    add({ owner, ...forecast }: Owned): void {
      const { family, given } = forecast;
      const said = saidIn(forecast);
      const of_owner = owners.get(owner);
      if (of_owner === undefined) owners.set(owner, [said]);
      else of_owner.push(said);
      if (given === null) return;
      const sum = sums.get(family) ?? given.map(() => 0);
      sums.set(family, sum);
      for (let n = 0; n < given.length; n += 1) sum[n]! += given[n]!;
    },
    /** Call this only once. Yields the number of forecasts counted since the last yield. */
    *sumUp(): Generator<number, Sums> {
      for (const [family, sum] of sums) {
        for (const [n, units] of sum.entries()) add(`${family}|${n}`, units);
      }
      for (const all_said of owners.values()) {
        for (const said of all_said) {
          for (const [field, by] of fieldsOf(said, all_said.length)) add(field, by);
        }
        add(mixField(all_said.map((said) => said.split('|', 1)[0] as string)), 1);
        yield all_said.length;
      }
      removeEmpty();
      return { cells, owners };
    },
  };
};
export type Counter = ReturnType<typeof makeCounter>;

export const countAll = (all: Iterable<Owned>): Sums => {
  const counter = makeCounter();
  for (const one of all) counter.add(one);
  const summing = counter.sumUp();
  for (;;) {
    const { done, value } = summing.next();
    if (done === true) return value;
  }
};

/** Runs `sumUp` in portions, so that the event loop can do other work in between. */
export const sumUpInTurns = async (
  counter: Counter,
  pause: ReturnType<typeof makePause>,
): Promise<Sums> => {
  const summing = counter.sumUp();
  for (;;) {
    const { done, value } = summing.next();
    if (done === true) return value;
    await pause(value);
  }
};

const readMix = (field: string): Tally['mixes'][number]['families'] =>
  field.split(',').map((part) => {
    const [family = '', count] = part.split(':');
    return [family, Number(count)] as const;
  });

type MutableCell = { -readonly [N in keyof Tally['cells'][number]]: Tally['cells'][number][N] };

export const readCells = (
  fields: Iterable<readonly [field: string, count: number]>,
  { offset, updated_at }: Pick<Tally, 'offset' | 'updated_at'>,
): Tally => {
  const cells = new Map<string, MutableCell>();
  const given = new Map<string, number[]>();
  const values = new Map<number, number>();
  const option_cells = new Map<string, { family: string; size: number; log_odds: number[] }>();
  const option_values: Map<number, number>[] = [];
  const mixes: Tally['mixes'][number][] = [];
  for (const [field, count] of fields) {
    const [family = '', side, size, what] = field.split('|');
    if (side === undefined) {
      const [option, chance] = field.split('/');
      if (field.includes(':')) mixes.push({ families: readMix(field), owners: count });
      else if (chance === undefined) values.set(Number(field), count);
      else {
        const stated = option_values[Number(option)] ?? new Map<number, number>();
        option_values[Number(option)] = stated.set(Number(chance), count);
      }
      continue;
    }
    if (size === undefined) {
      const sums = given.get(family) ?? [];
      sums[Number(side)] = count;
      given.set(family, sums);
      continue;
    }
    if (what === undefined) {
      const key = `${family}|${size}`;
      const cell = option_cells.get(key) ?? { family, size: Number(size), log_odds: [] };
      option_cells.set(key, cell);
      cell.log_odds[Number(side)] = count;
      continue;
    }
    const key = field.slice(0, -2);
    const option = /^\d/.test(side) ? Number(side) : null;
    const yes = option === null ? side === 'y' : null;
    const none = { count: 0, sum: 0, log_odds: 0 };
    const cell = cells.get(key) ?? { family, yes, option, size: Number(size), ...none };
    cells.set(key, cell);
    cell[what === 'n' ? 'count' : what === 'v' ? 'sum' : 'log_odds'] = count;
  }
  return {
    cells: [...cells.values()],
    values,
    mixes,
    given,
    option_cells: [...option_cells.values()],
    option_values,
    offset,
    updated_at,
  };
};

/** Returns undefined if Redis has no tally. */
export const readHash = ({ o, t, ...fields }: Record<string, string>): Tally | undefined => {
  if (o === undefined) return undefined;
  const counts = Object.entries(fields).map(([field, count]) => [field, Number(count)] as const);
  return readCells(counts, { offset: Number(o), updated_at: t === '' ? null : (t ?? null) });
};

/** Writes a tally to Redis, unless Redis already has a newer one. */
export const setTally = async (
  redis: RedisClient,
  prefix: string,
  { question_id, cells, owners, offset, updated_at }: Counted,
): Promise<void> => {
  let said_by_owners = '';
  for (const [owner, said] of owners) said_by_owners += `${owner}\n${said.join(' ')}\n`;
  const args: (string | number)[] = [offset, updated_at ?? '', said_by_owners];
  for (const [field, count] of cells) args.push(field, count);
  await setScript(redis, tallyKeys(prefix, question_id), args);
};
