import type { Redis } from 'ioredis';
import { loadScript } from '../../redis/client.js';
import { type LogEntry, readData } from '../events/index.js';
import { type Forecast, givenBy, type Position, type Tally } from './rules.js';

/**
 * The tally of a question: how many predictions say the same and have owners of the same size, and
 * with options what each family gives to each. Redis has it in one hash, whole numbers by field:
 *
 *   family|y or n or option|value|size   predictions; size: how many the owner of each has
 *   family|option                        sum of what it is given
 *   o, t                                 offset and time of the last prediction counted in
 *
 * A second hash, which only scripts read, has the cells of each owner: with one more prediction of
 * the owner those before it move into the cells of the next size.
 */

const setScript = loadScript('tally-set-2.lua');

/**
 * Questions share sixteen hash tags, by the last digit of their id: a batch of the log that touches
 * many questions takes at most sixteen script calls, and a cluster still spreads them.
 */
export const tagOf = (question_id: string): string => `q${question_id.slice(-1)}`;

/** The number is that of the format. */
export const tallyKey = (prefix: string, question_id: string): string =>
  `${prefix}:{${tagOf(question_id)}}:tally:2:${question_id}`;
export const tallyKeys = (prefix: string, question_id: string): readonly string[] => {
  const key = tallyKey(prefix, question_id);
  return [key, `${key}:owners`];
};

/** The cell of a prediction, as a field without blanks. */
export const cellField = ({ family, yes, option, value }: Position): string =>
  `${family}|${option === null ? (yes ? 'y' : 'n') : option}|${value}`;

/** The forecast in the event of a prediction; `options` are those of the question. */
export const forecastIn = (entry: LogEntry, options: readonly string[]): Forecast => {
  const data = readData(entry);
  const index = data['option_index'];
  const option = typeof index === 'number' ? index : null;
  const value = Number(data[option === null ? 'probability' : 'confidence']);
  const named = data['probabilities'] as Readonly<Record<string, number>> | undefined;
  const percents = named === undefined ? null : options.map((name) => 100 * Number(named[name]));
  return {
    family: String(data['model_family']),
    yes: option === null ? data['prediction'] === true : null,
    option,
    value,
    given: givenBy({ option, value }, percents, options.length),
  };
};

export interface Counted extends Pick<Tally, 'offset' | 'updated_at'> {
  readonly question_id: string;
  /** By field of the hash. */
  readonly cells: ReadonlyMap<string, number>;
  /** The cells of each owner, repeated for each of its predictions. */
  readonly owners: ReadonlyMap<string, readonly string[]>;
}

const add = (to: Map<string, number>, field: string, count: number): void => {
  to.set(field, (to.get(field) ?? 0) + count);
};

/** Counts predictions; those of one owner are known in full. */
export const countAll = (
  all: Iterable<Forecast & { readonly owner: string }>,
): Pick<Counted, 'cells' | 'owners'> => {
  const cells = new Map<string, number>();
  const owners = new Map<string, string[]>();
  for (const { owner, given, ...said } of all) {
    const of_owner = owners.get(owner);
    if (of_owner === undefined) owners.set(owner, [cellField(said)]);
    else of_owner.push(cellField(said));
    for (const [n, units] of (given ?? []).entries()) add(cells, `${said.family}|${n}`, units);
  }
  for (const fields of owners.values()) {
    for (const field of fields) add(cells, `${field}|${fields.length}`, 1);
  }
  return { cells, owners };
};

export const readCells = (
  fields: Iterable<readonly [field: string, count: number]>,
  { offset, updated_at }: Pick<Tally, 'offset' | 'updated_at'>,
): Tally => {
  const tally = { cells: [] as Tally['cells'][number][], given: new Map<string, number[]>() };
  for (const [field, count] of fields) {
    const [family = '', side = '', value, size] = field.split('|');
    if (size === undefined) {
      const sums = tally.given.get(family) ?? [];
      sums[Number(side)] = count;
      tally.given.set(family, sums);
      continue;
    }
    const option = /^\d/.test(side) ? Number(side) : null;
    const yes = option === null ? side === 'y' : null;
    tally.cells.push({ family, yes, option, value: Number(value), size: Number(size), count });
  }
  return { ...tally, offset, updated_at };
};

/** Undefined where there is none. */
export const readHash = ({ o, t, ...fields }: Record<string, string>): Tally | undefined => {
  if (o === undefined) return undefined;
  const counts = Object.entries(fields).map(([field, count]) => [field, Number(count)] as const);
  return readCells(counts, { offset: Number(o), updated_at: t === '' ? null : (t ?? null) });
};

/** Sets a tally from the record, unless the one in Redis is newer. */
export const setTally = async (
  redis: Redis,
  prefix: string,
  { question_id, cells, owners, offset, updated_at }: Counted,
): Promise<void> => {
  const args: (string | number)[] = [offset, updated_at ?? '', cells.size];
  for (const [field, count] of cells) args.push(field, count);
  for (const [owner, fields] of owners) args.push(owner, fields.join(' '));
  await setScript(redis, tallyKeys(prefix, question_id), args);
};
