import { cellField, givenBy, tallyKey } from '../../features/consensus/index.js';
import { projectedKey, readHead } from '../../features/events/index.js';
import type { Tx } from '../../kit/pg/client.js';
import { chunk, makeFindings, type VerifyParts } from './parts.js';
import {
  readOldestAfter,
  readQuestionIds,
  readStatedValues,
  streamLastPredictions,
} from './tally-store.js';

/**
 * The live tallies against the record, while the log goes on. Redis says up to which offset it was
 * brought; with its own offset, a tally tells exactly which events are in it, and the record is
 * read as of that offset. A page of questions at a time, so memory stays flat.
 */

type Hash = Readonly<Record<string, string>>;

const readTallies = async (
  { redis, prefix }: VerifyParts,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Hash>> => {
  const hashes = await Promise.all(ids.map((id) => redis.hgetall(tallyKey(prefix, id))));
  return new Map(ids.map((id, index) => [id, hashes[index] ?? {}]));
};

const readProjected = async ({ redis, prefix }: VerifyParts): Promise<number> =>
  Number((await redis.get(projectedKey(prefix))) ?? -1);

const describe = (cells: ReadonlyMap<string, number>): string =>
  [...cells]
    .map(([field, count]) => `${field}=${count}`)
    .sort()
    .join(' ');

const cellsOf = ({ o: _, t: __, ...counts }: Hash): ReadonlyMap<string, number> =>
  new Map(Object.entries(counts).map(([field, count]) => [field, Number(count)]));

const checkPage = async (parts: VerifyParts, ids: readonly string[]): Promise<string[]> => {
  const projected = await readProjected(parts);
  const tallies = await readTallies(parts, ids);
  const standing = [...tallies].map(([question_id, hash]) => ({
    question_id,
    offset: Math.max(projected, Number(hash['o'] ?? 0)),
  }));
  const wanted = new Map<string, Map<string, number>>();
  for (const row of await readStatedValues(parts.sql, standing)) {
    const cells = wanted.get(row.question_id) ?? new Map<string, number>();
    wanted.set(row.question_id, cells);
    const add = (field: string, count: number) => cells.set(field, (cells.get(field) ?? 0) + count);
    add(`${cellField(row)}|${row.size}`, row.count);
    const given = givenBy(row, row.probabilities, row.options) ?? [];
    for (const [n, units] of given.entries()) add(`${row.family}|${n}`, units * row.count);
  }
  return ids.flatMap((id) => {
    const hash = tallies.get(id) ?? {};
    const cells = describe(wanted.get(id) ?? new Map());
    if (hash['o'] === undefined) return cells === '' ? [] : [`question ${id} has no live tally`];
    const live = describe(cellsOf(hash));
    return live === cells ? [] : [`question ${id} is tallied ${live} instead of ${cells}`];
  });
};

/** The offset of a tally is what keeps an event from being counted twice, so it may not lag. */
const checkOffsets = async (
  parts: VerifyParts,
  tx: Tx,
  projected: number,
): Promise<readonly string[]> => {
  const found = makeFindings();
  for await (const page of streamLastPredictions(tx, projected, chunk)) {
    const tallies = await readTallies(
      parts,
      page.map(({ question_id }) => question_id),
    );
    const head = await readHead(parts.sql);
    for (const { question_id, last_offset } of page) {
      const at = tallies.get(question_id)?.['o'];
      if (at === undefined || (Number(at) >= last_offset && Number(at) <= head)) continue;
      found.add(`the tally of question ${question_id} stands at ${at}, its last event is another`);
    }
  }
  return found.lines;
};

/** Every question has its tally, to the last value, and it knows how far it is. */
export const checkTallies = async (parts: VerifyParts): Promise<readonly string[]> => {
  const projected = await readProjected(parts);
  const lag_ms = await readOldestAfter(parts.sql, projected);
  const found = makeFindings();
  if (lag_ms !== null && lag_ms >= (parts.under_way_ms ?? 0)) {
    found.add(`Redis follows the log up to ${projected}, and the next event is ${lag_ms} ms old`);
  }
  let after = '00000000-0000-0000-0000-000000000000';
  for (;;) {
    const ids = await readQuestionIds(parts.sql, after, chunk);
    const last = ids.at(-1);
    if (last === undefined) break;
    for (const line of await checkPage(parts, ids)) found.add(line);
    after = last;
  }
  const offsets = await parts.sql.begin({ mode: 'read only', statement_ms: 120_000 }, (tx) =>
    checkOffsets(parts, tx, projected),
  );
  return [...found.lines, ...offsets];
};
