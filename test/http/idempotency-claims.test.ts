import { pino } from 'pino';
import { t } from 'tap';
import { openSql, type Sql } from '../../src/db/client.js';
import {
  type CallToClaim,
  type Claim,
  ClaimLostError,
  createIdempotency,
  createIdempotencySweep,
  type Idempotency,
  isKept,
  keepAll,
} from '../../src/http/idempotency.js';
import { reply } from '../../src/http/route.js';
import { common_faults, refuse } from '../../src/kit/fault.js';
import { openStores } from '../help/stores.js';
import { until } from '../help/until.js';

/** Claims and kept answers by themselves: leases, fences, seals and the end of it all. */

const stores = await openStores(t);
const log = pino({ level: 'silent' });
const secret_key = 'a-secret-key-of-these-tests-0123456789';
const open = (): Sql =>
  openSql({ url: stores.database_url, pool: 4, prepare: true, name: 'idempotency' });
const sql = open();
const other_sql = open();
t.teardown(() => Promise.all([sql.end({ timeout: 1 }), other_sql.end({ timeout: 1 })]));
// Leases end when a test says so.
const lease_ms = 3_600_000;
const keeper = createIdempotency({ sql, secret_key, log, lease_ms });
const other = createIdempotency({ sql: other_sql, secret_key, log, lease_ms });
await sql`create table effects (name text primary key)`;

let used = 0;
const call = (more: Partial<CallToClaim> = {}): CallToClaim => {
  used += 1;
  return {
    ...{ scope: 'agent:a', key: `key ${used}`, route: 'makeToy', target: '/api/toys?' },
    ...{ raw_body: Buffer.from('{"a":1}'), credential: null },
    ...more,
  };
};

const mustClaim = async (by: Idempotency, asked: CallToClaim): Promise<Claim> => {
  const claimed = await by.claim(asked);
  if (claimed.kind !== 'claimed') throw new Error(`the claim is ${claimed.kind}`);
  return claimed.claim;
};

const endLease = ({ key }: CallToClaim) =>
  sql`update idempotency set lease_until = now() - interval '1 ms' where key = ${key}`;
const age = ({ key }: CallToClaim, by: string) =>
  sql`update idempotency set created_at = now() - ${by}::interval where key = ${key}`;
const answer = reply(201, { api_key: 'sk_secret_of_the_answer', n: 1 }, { Location: '/x' });
const keepIt = (claim: Claim) => sql.begin((tx) => keepAll(tx, [{ claim, answer }]));

t.test('a key is claimed once, and its answer is replayed to the same request', async (t) => {
  const asked = call();
  const claim = await mustClaim(keeper, asked);
  t.same(await other.claim(asked), { kind: 'running' });
  await keepIt(claim);
  t.same(await other.claim(asked), { kind: 'replay', answer });
  t.same(await keeper.claim(asked), { kind: 'replay', answer });
});

t.test('another route, target or body under the key is a mismatch, at any time', async (t) => {
  const asked = call();
  const others = [
    { ...asked, route: 'makeOtherToy' },
    { ...asked, target: '/api/toys?a=1' },
    { ...asked, raw_body: Buffer.from('{"a":2}') },
  ];
  const claim = await mustClaim(keeper, asked);
  for (const one of others) t.same(await other.claim(one), { kind: 'mismatch' }, 'while it runs');
  await endLease(asked);
  for (const one of others) t.same(await other.claim(one), { kind: 'mismatch' }, 'left behind');
  await keepIt(claim);
  for (const one of others) t.same(await other.claim(one), { kind: 'mismatch' }, 'when it is done');
});

t.test('the same key of another caller is another key', async (t) => {
  const asked = call();
  await mustClaim(keeper, asked);
  await mustClaim(keeper, { ...asked, scope: 'agent:b', raw_body: Buffer.from('other') });
  t.pass();
});

t.test('who slept through its lease loses its effect to the one that took over', async (t) => {
  const asked = call();
  const asleep = await mustClaim(keeper, asked);
  await endLease(asked);
  const awake = await mustClaim(other, asked);
  const late = sql.begin(async (tx) => {
    await tx`insert into effects values ('twice')`;
    await keepAll(tx, [{ claim: asleep, answer }]);
  });
  await t.rejects(late, ClaimLostError);
  t.equal((await sql`select from effects where name = 'twice'`).length, 0);
  await keeper.release(asleep);
  await keeper.keepAfter(asleep, reply(200, { wrong: true }));
  t.same(await keeper.claim(asked), { kind: 'running' }, 'and it cannot free or answer it');
  await keepIt(awake);
  t.same(await keeper.claim(asked), { kind: 'replay', answer });
});

t.test('a batch in which one claim is lost keeps nothing', async (t) => {
  const [a, b] = [call(), call()];
  const held = await mustClaim(keeper, a);
  const lost = await mustClaim(keeper, b);
  await endLease(b);
  await mustClaim(other, b);
  const batch = sql.begin((tx) =>
    keepAll(tx, [
      { claim: held, answer },
      { claim: lost, answer },
    ]),
  );
  await t.rejects(batch, ClaimLostError);
  t.same(await keeper.claim(a), { kind: 'running' });
  await sql.begin((tx) => keepAll(tx, []));
});

t.test('a transaction that is rolled back keeps no answer; one run again keeps it', async (t) => {
  const asked = call();
  const claim = await mustClaim(keeper, asked);
  const failed = sql.begin(async (tx) => {
    await keepAll(tx, [{ claim, answer }]);
    throw new Error('after all not');
  });
  await t.rejects(failed, /after all not/);
  t.same(await keeper.claim(asked), { kind: 'running' });
  await keepIt(claim);
  await keepIt(claim);
  t.same(await keeper.claim(asked), { kind: 'replay', answer });
});

t.test('a released key is free for any request; a stored answer is not released', async (t) => {
  const asked = call();
  await keeper.release(await mustClaim(keeper, asked));
  const claim = await mustClaim(keeper, { ...asked, raw_body: Buffer.from('mended') });
  await keepIt(claim);
  await keeper.release(claim);
  await keeper.keepAfter(claim, reply(200, { wrong: true }));
  t.same(await keeper.claim({ ...asked, raw_body: Buffer.from('mended') }), {
    kind: 'replay',
    answer,
  });
});

t.test('sixteen at once through two processes: one of them claims', async (t) => {
  for (let round = 0; round < 20; round += 1) {
    const asked = call();
    const keepers = Array.from({ length: 8 }, () => [keeper, other]).flat();
    const claims = await Promise.all(keepers.map((one) => one.claim(asked)));
    t.equal(claims.filter(({ kind }) => kind === 'claimed').length, 1);
    t.equal(claims.filter(({ kind }) => kind === 'running').length, 15);
  }
});

t.test('what is kept is sealed, and opens under its own name only', async (t) => {
  const [asked, copy] = [call(), call()];
  await keepIt(await mustClaim(keeper, asked));
  await keepIt(await mustClaim(keeper, copy));
  const rows = await sql<{ answer: Uint8Array; digest: Uint8Array }[]>`
    select answer, digest from idempotency where key in (${asked.key}, ${copy.key})`;
  t.equal(rows.length, 2);
  for (const row of rows) t.notOk(Buffer.from(row.answer).includes('sk_secret'));
  t.notOk(Buffer.from(rows[0]?.answer ?? []).equals(Buffer.from(rows[1]?.answer ?? [])));
  await sql`
    update idempotency
    set answer = (select answer from idempotency where key = ${asked.key})
    where key = ${copy.key}`;
  t.same(await keeper.claim(copy), { kind: 'mismatch' }, 'an answer of another key');
  const stranger = createIdempotency({ sql, secret_key: `${secret_key}!`, log });
  t.same(await stranger.claim(asked), { kind: 'mismatch' }, 'another SECRET_KEY');
});

t.test('a call that ended its credentials is found by them, for ten minutes', async (t) => {
  const key = '0190c4de-7e1b-7000-8000-0123456789ab';
  const asked = call({ key, credential: 'sk_old' });
  t.equal(await keeper.findEnded(asked), null);
  const claim = await mustClaim(keeper, asked);
  t.equal(await keeper.findEnded(asked), null, 'not while it runs');
  await keepIt(claim);
  const repeat = { ...asked, scope: '' };
  t.same(await other.findEnded(repeat), answer);
  t.equal(await keeper.findEnded({ ...repeat, credential: 'sk_other' }), null);
  t.equal(await keeper.findEnded({ ...repeat, raw_body: Buffer.from('{}') }), null);
  t.equal(await keeper.findEnded({ ...repeat, route: 'other' }), null);
  t.equal(await keeper.findEnded({ ...repeat, key: `${key}x` }), null);
  await age(asked, '9 minutes 59 seconds');
  t.same(await keeper.findEnded(repeat), answer);
  await age(asked, '10 minutes');
  t.equal(await keeper.findEnded(repeat), null);
  const short = call({ key: '1234567890123456789', credential: 'sk_old' });
  await keepIt(await mustClaim(keeper, short));
  t.equal(await keeper.findEnded(short), null, 'a key that somebody could guess');
});

t.test('answers are forgotten after a day, claimed anew or swept', async (t) => {
  const [young, old, reused] = [call(), call(), call()];
  for (const one of [young, old, reused]) await keepIt(await mustClaim(keeper, one));
  await age(young, '23 hours 59 minutes');
  await age(old, '24 hours');
  await age(reused, '24 hours');
  await mustClaim(keeper, { ...reused, raw_body: Buffer.from('something else') });
  const sweep = createIdempotencySweep(sql, log);
  await sweep.start();
  const keysLeft = async () => {
    const rows = await sql<{ key: string }[]>`
      select key from idempotency where key in (${young.key}, ${old.key}, ${reused.key})`;
    return rows.map((row) => row.key).sort();
  };
  await until('the old one is swept', async () => (await keysLeft()).length === 2);
  await sweep.stop();
  t.same(await keysLeft(), [young.key, reused.key].sort());
  t.same(await keeper.claim(young), { kind: 'replay', answer });
});

t.test('success and judgements of the state of things are kept, and nothing else', async (t) => {
  t.ok(isKept(reply(201, {})));
  const kept = Object.values(common_faults).filter((def) => isKept(refuse(def)));
  t.same(
    kept.map(({ code }) => code).sort(),
    [
      ...['ACCOUNT_SUSPENDED', 'AGENTS_ONLY', 'AGENT_NOT_LINKED', 'HUMANS_ONLY'],
      ...['IDEMPOTENCY_IN_PROGRESS', 'NOT_FOUND'],
    ].sort(),
  );
});
