import fc from 'fast-check';
import {
  type CursorKind,
  decodeCursor,
  encodeCursor,
  listMark,
  makePage,
  pageHeaders,
  readPage,
} from '../../src/http/page.js';
import { isFault } from '../../src/kit/fault.js';
import { makeId } from '../../src/kit/ids.js';
import { t } from '../help/tap.js';

const path = '/api/questions';
const mark = listMark(path, { status: 'open' });
const page = { mark, limit: 2 };
const epoch = new Date(0);
const end = new Date(253_402_300_799_999);

t.test('a cursor gives back the key it was made from', async (t) => {
  const kinds: CursorKind[] = ['number', 'time', 'text', 'id'];
  const key = fc.tuple(
    fc.option(fc.integer()),
    fc.option(fc.date({ min: epoch, max: end, noInvalidDate: true }).map((d) => d.toISOString())),
    fc.string().filter((text) => !text.includes('\0')),
    fc.integer({ min: 0, max: 2 ** 40 }).map(() => makeId()),
  );
  fc.assert(
    fc.property(key, (parts) => {
      t.same(decodeCursor(mark, encodeCursor(mark, parts), kinds), parts);
    }),
    { numRuns: 100 },
  );
});

t.test('a cursor of another list or of nobody is refused, and never throws', async (t) => {
  const id = makeId();
  const bad: readonly (readonly [string, readonly CursorKind[]])[] = [
    ['', ['id']],
    ['%%%', ['id']],
    [encodeCursor(mark, []), ['id']],
    [encodeCursor(mark, [id, id]), ['id']],
    [encodeCursor(mark, ['no id']), ['id']],
    [encodeCursor(mark, [null]), ['id']],
    [encodeCursor(mark, [7]), ['id']],
    [encodeCursor(mark, ['seven', id]), ['number', 'id']],
    [encodeCursor(mark, [2 ** 31]), ['number']],
    [encodeCursor(mark, [-(2 ** 31) - 1]), ['number']],
    [encodeCursor(mark, [1.5]), ['number']],
    [encodeCursor(mark, ['yesterday', id]), ['time', 'id']],
    [encodeCursor(mark, ['2024-02-30T00:00:00.000Z']), ['time']],
    [encodeCursor(mark, ['1']), ['time']],
    [encodeCursor(mark, ['+012345-01-01T00:00:00.000Z']), ['time']],
    [encodeCursor(mark, ['a\0b']), ['text']],
    [Buffer.from('{"length":1}').toString('base64url'), ['id']],
    [encodeCursor(listMark('/api/agents', { status: 'open' }), [id]), ['id']],
    [encodeCursor(listMark(path, { status: 'closed' }), [id]), ['id']],
    [encodeCursor(listMark(path, {}), [id]), ['id']],
  ];
  for (const [cursor, kinds] of bad) t.equal(decodeCursor(mark, cursor, kinds), null, cursor);
  fc.assert(
    fc.property(fc.string(), (cursor) => {
      const asked = readPage(path, { limit: 5, cursor }, ['id']);
      t.ok(isFault(asked));
    }),
    { numRuns: 100 },
  );
});

t.test('a list is its path, order and filter, however they are written', async (t) => {
  const of = { status: 'open', sort: 'new', q: undefined, limit: 5 };
  t.equal(listMark(path, of), listMark(path, { limit: 9, offset: 3, sort: 'new', status: 'open' }));
  t.not(listMark(path, of), listMark(path, { ...of, sort: 'old' }));
});

t.test('a page ends where the rows end', async (t) => {
  const keyOf = (row: number) => [row];
  t.same(makePage([], page, keyOf), { rows: [], next_cursor: null });
  t.same(makePage([1, 2], page, keyOf), { rows: [1, 2], next_cursor: null });
  const more = makePage([1, 2, 3], page, keyOf);
  t.same(more.rows, [1, 2]);
  t.same(decodeCursor(mark, more.next_cursor ?? '', ['number']), [2]);
  for (const edge of [-(2 ** 31), 2 ** 31 - 1]) {
    t.same(
      decodeCursor(mark, encodeCursor(mark, [edge]), ['number']),
      [edge],
      'all of a Postgres integer',
    );
  }
});

t.test('a cursor wins over an offset, and the next link keeps the rest of the query', async (t) => {
  const cursor = encodeCursor(listMark(path, {}), [makeId()]);
  t.match(readPage(path, { limit: 5, cursor, offset: 9 }, ['id']), { offset: 0, after: [String] });
  t.match(readPage(path, { limit: 5, offset: 9 }, ['id']), { offset: 9, after: null });
  const query = { limit: 5, offset: 9, status: 'open', q: 'a&b' };
  t.same(pageHeaders('/api/questions', query, 'CUR'), {
    Link: '</api/questions?limit=5&status=open&q=a%26b&cursor=CUR>; rel="next"',
  });
  t.same(pageHeaders('/api/questions', query, null), {});
});
