import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { followClock, openSql, type Sql } from '../../src/db/client.js';
import { openAdmin } from '../help/own-stores.js';
import { holds } from '../help/property.js';
import { withSkewedClock } from '../help/skewed-clock.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';

const stores = await openStores(t);
const open = (name: string, pool = 2): Sql =>
  openSql({ url: stores.database_url, pool, prepare: true, name });
const sql = open('arrays');
t.teardown(() => sql.end({ timeout: 1 }));

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }).filter((some) => !some.includes('\0')),
  fc.string({ unit: fc.constantFrom(...'"\\,{} \n\'nulNUL'), maxLength: 6 }),
  fc.constantFrom('', 'NULL', 'null', '{}', '"', '\\', ',', ' '),
);

t.test('arrays of texts go there and come back as they were', async (t) => {
  const property = fc.asyncProperty(fc.array(fc.option(text), { maxLength: 8 }), async (texts) => {
    const [row] = await sql<{ back: string[]; json: string[] }[]>`
      select ${texts}::text[] as back, to_json(${texts}::text[]) as json`;
    // Postgres generates this JSON, so it shows the data that really arrived.
    return (
      JSON.stringify(row?.back) === JSON.stringify(texts) &&
      JSON.stringify(row?.json) === JSON.stringify(texts)
    );
  });
  await holds(t, property, { numRuns: 150 });
});

t.test('long arrays of long texts of any script go there whole', async (t) => {
  const texts = [1, 3_000, 70_000, 200_000].flatMap((length) =>
    ['a', '"', '\\', 'é', '語', '😀'].map((sign) => sign.repeat(length)),
  );
  for (const given of [texts, [null, ...texts], texts.slice(0, 1)]) {
    const [row] = await sql`
      select array_length(g, 1) as count, md5(array_to_string(g, ',', '-')) as digest
      from (select ${given}::text[]) as a (g)`;
    const digest = createHash('md5')
      .update(given.map((text) => text ?? '-').join(','))
      .digest('hex');
    t.same(row, { count: given.length, digest });
  }
});

t.test('arrays of the other types in use go there and come back', async (t) => {
  const time = new Date('2026-03-01T12:00:00.123Z');
  const [row] = await sql`
    select
      ${['2026-03-01', null]}::date[] as dates,
      ${[time.toISOString(), null]}::timestamptz[] as times,
      array[true, false, null] as booleans,
      array['a', null, 'b,"c"']::varchar[] as varchars,
      array['\\x00ff'::bytea, null] as byteas,
      ${[]}::integer[] as empty`;
  t.same(row, {
    dates: [new Date('2026-03-01'), null],
    times: [time, null],
    booleans: [true, false, null],
    varchars: ['a', null, 'b,"c"'],
    byteas: [Buffer.from([0, 255]), null],
    empty: [],
  });
});

t.test('arrays of ids and numbers go there and come back as they were', async (t) => {
  const whole = (bits: number) => fc.integer({ min: -(2 ** (bits - 1)), max: 2 ** (bits - 1) - 1 });
  const some = <T>(one: fc.Arbitrary<T>) => fc.array(fc.option(one), { maxLength: 6 });
  const double = fc.double({ noNaN: true }).map((value) => (value === 0 ? 0 : value));
  const given = fc.tuple(
    some(fc.uuid()),
    some(whole(16)),
    some(whole(32)),
    some(fc.maxSafeInteger()),
    some(double),
  );
  const property = fc.asyncProperty(given, async ([uuids, small, integers, big, doubles]) => {
    const [row] = await sql`
      select
        ${uuids}::uuid[] as uuids, ${small}::smallint[] as small,
        ${integers}::integer[] as integers, ${big}::bigint[] as big,
        ${doubles}::double precision[] as doubles`;
    t.same(row, { uuids, small, integers, big, doubles });
    return true;
  });
  await holds(t, property, { numRuns: 150 });
});

t.test('what is no element of its type is refused, and nothing else goes wrong', async (t) => {
  const id = '01900000-0000-7000-8000-000000000001';
  const refused = async (ask: PromiseLike<unknown>, code: string) =>
    t.rejects(Promise.resolve(ask), { code });
  await refused(sql`select ${[1, 32_768]}::smallint[]`, '22003');
  await refused(sql`select ${[1, 2 ** 31]}::integer[]`, '22003');
  await refused(sql`select ${[1, 1.5]}::integer[]`, '22P02');
  await refused(sql`select ${[id, `${id.slice(0, 35)}g`]}::uuid[]`, '22P02');
  await refused(sql`select ${[id, 'é'.repeat(36)]}::uuid[]`, '22P02');
  const [row] = await sql`
    select ${[id.toUpperCase()]}::uuid[] as uuids, ${[Infinity, NaN]}::float8[] as doubles`;
  t.same(row, { uuids: [id], doubles: [Infinity, NaN] });
});

t.test('every array type of the schema is known here', async (t) => {
  const rows = await sql`
    select table_name, column_name, udt_name
    from information_schema.columns
    where table_schema = 'public' and data_type = 'ARRAY'`;
  t.ok(rows.length > 5);
  for (const { table_name, column_name, udt_name } of rows) {
    const [row] = await sql.unsafe(`select '{null}'::${udt_name} as back`);
    t.ok(Array.isArray(row?.['back']), `${table_name}.${column_name} (${udt_name})`);
  }
});

t.test('a Postgres that goes away during a connect rejects only what was sent', async (t) => {
  const stray: unknown[] = [];
  const note = (error: unknown): void => {
    stray.push(error);
  };
  process.on('unhandledRejection', note);
  t.teardown(() => process.off('unhandledRejection', note));
  for (let round = 0; round < 5; round += 1) {
    const victim = open('victim', 4);
    const asked = Promise.allSettled(Array.from({ length: 4 }, () => victim`select 1`));
    for (let cut = 0; cut < 6; cut += 1) {
      await sql`
        select pg_terminate_backend(pid)
        from pg_stat_activity
        where application_name = 'prediction-forum victim' and datname = current_database()`;
    }
    await asked;
    await victim.end({ timeout: 1 });
  }
  t.same(stray, []);
});

t.test('the clock is that of Postgres, however far off this process is', async (t) => {
  for (const hours of [-30, 30]) {
    const { database_url } = await openStores(t);
    await withSkewedClock(database_url, hours);
    const sql = openAdmin(database_url);
    const clock = followClock(sql);
    t.teardown(() => {
      clock.stop();
      return sql.end();
    });
    t.ok(Math.abs(clock.now().getTime() - Date.now()) < 1_000, 'its own before the first answer');
    await clock.read();
    const [before] = await sql<{ now: Date }[]>`select clock_timestamp() as now`;
    const read = clock.now();
    const [after] = await sql<{ now: Date }[]>`select clock_timestamp() as now`;
    // A clock reading may be off by the duration of the query.
    t.ok(read.getTime() >= (before?.now.getTime() ?? 0) - 1_000, `${hours} hours`);
    t.ok(read.getTime() <= (after?.now.getTime() ?? 0) + 1_000, `${hours} hours`);
    t.ok(Math.abs(read.getTime() - Date.now() - hours * 3_600_000) < 5_000);
  }
});

t.test('where Postgres is away, the clock runs on', async (t) => {
  const { database_url } = await openStores(t);
  await withSkewedClock(database_url, 30);
  const sql = openAdmin(database_url);
  const clock = followClock(sql);
  t.teardown(clock.stop);
  await clock.read();
  const known = clock.now().getTime();
  await sql.end();
  await clock.read();
  const later = clock.now().getTime();
  t.ok(later >= known && later - known < 5_000);
});
