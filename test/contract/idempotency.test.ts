import { type Route, takesKey } from '../../src/http/route.js';
import { makeId } from '../../src/kit/ids.js';
import { api_routes } from '../../src/routes.js';
import { type Answered, no_limits, startApp, type TestApp } from '../help/app.js';
import { startFaultyProxy } from '../help/faulty-proxy.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { type ExampleCall, prepareExamples } from './example-calls.js';

/** Each POST route with an Idempotency-Key has one effect and one answer, in one transaction. */

const posts = (api_routes as readonly Route[]).filter(
  (route) => route.method === 'POST' && takesKey(route) && !route.is_endless,
);
const inside = posts.filter(({ stores_answer }) => stores_answer === 'inside');

/** A repeat of these calls has no further effect, so the answer may be stored afterwards. */
const after: Readonly<Record<string, string>> = {
  testWebhook: 'a ping goes to the receiver, outside of any transaction',
  addTaxonomyTags: 'a tag that is there stays',
  takeEvents: 'what is leased twice is delivered again when the lease ends',
  acknowledgeEvents: 'what is acknowledged stays so',
  releaseEvents: 'what is given back stays so',
  extendEvents: 'the time begins anew',
  requeueParkedEvents: 'what is put back stays so',
  dropParkedEvents: 'what is given up stays so',
  seekConsumer: 'the same place again',
  visitFollows: 'it is the same visit',
  simulatePoints: 'nothing is changed',
  previewResolution: 'nothing is changed',
  upvotePrediction: 'a vote that is cast stays',
  downvotePrediction: 'a vote that is cast stays',
  upvoteComment: 'a vote that is cast stays',
  createPredictions: 'the same forecast again finds its first result; an item each transaction',
  importQuestions: 'a source that is known is found again; an item each transaction',
  importAgents: 'a name that is known is found again; an item each transaction',
  importPredictions: 'the same forecast again is there already',
  importResolutions: 'the same decision again is made already; an item each transaction',
};

const env = { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', DATABASE_PREPARE: 'false', ...no_limits };
const stores = await openStores(t);
const proxy = await startFaultyProxy(t, stores.database_url);
const through = { ...stores, database_url: proxy.url };
const app = await startApp(t, { roles: ['api'], env, stores: through });

const send = (call: ExampleCall, key: string): Promise<Answered> =>
  app.call('POST', call.path, {
    ...call.send,
    headers: { ...call.send.headers, 'idempotency-key': key },
  });

const prepare = await prepareExamples(app);

interface Written {
  readonly table: string;
  readonly xid: string;
  readonly rows: number;
}

const tablesOf = async ({ sql }: TestApp): Promise<readonly string[]> => {
  const rows = await sql<{ name: string }[]>`
    select c.oid::regclass::text as name
    from pg_class c
    where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
    order by 1`;
  return rows.map(({ name }) => name);
};
const tables = await tablesOf(app);

/** The transactions from `xid` on, with the number of rows that each wrote to each table. */
const writtenSince = async (xid: string): Promise<readonly Written[]> => {
  const counts = tables.map(
    (name) => `select '${name}' as "table", xmin::text as xid, count(*)::int as rows
      from ${name} where xmin::text::bigint >= ${xid} group by 2`,
  );
  const rows = await app.sql.unsafe<Written[]>(`${counts.join(' union all ')} order by 1, 2`);
  return [...rows];
};

const nextXid = async (): Promise<string> => {
  const [row] = await app.sql<{ xid: string }[]>`
    select (pg_current_xact_id()::text::bigint % 4294967296)::text as xid`;
  return row?.xid ?? '';
};

t.test('every POST route says where it keeps its answer', async (t) => {
  t.same(
    posts
      .filter(({ id, stores_answer }) => stores_answer === 'after' && after[id] === undefined)
      .map(({ id }) => id),
    [],
  );
  t.same(
    Object.keys(after).filter((id) => inside.some((route) => route.id === id)),
    [],
  );
});

for (const route of posts) {
  t.test(`${route.id}: the same key twice has one effect and one answer`, async (t) => {
    const call = await prepare(route);
    const key = makeId();
    const start = await nextXid();
    const first = await send(call, key);
    t.ok(
      first.status >= 200 && first.status < 300,
      `${first.status} ${JSON.stringify(first.body)}`,
    );
    t.equal(first.headers.get('idempotency-replayed'), null);
    const written = await writtenSince(start);
    const kept = written.filter(({ table }) => table === 'idempotency');
    t.equal(kept.length, 1);
    if (route.stores_answer === 'inside') {
      const elsewhere = written.filter(({ xid }) => xid !== kept[0]?.xid);
      t.same(elsewhere, [], 'everything was written by the transaction that kept the answer');
    }
    const again = await send(call, key);
    t.equal(again.headers.get('idempotency-replayed'), 'true');
    t.equal(again.status, first.status);
    t.same(again.body, first.body);
    for (const name of ['location', 'cache-control', 'content-type', 'link']) {
      t.equal(again.headers.get(name), first.headers.get(name), name);
    }
    t.same(await writtenSince(start), written, 'nothing else was written');
  });
}

for (const route of inside) {
  t.test(`${route.id}: a lost connection after the commit is no second effect`, async (t) => {
    const call = await prepare(route);
    const key = makeId();
    const cuts_before = proxy.cuts;
    proxy.arm('update idempotency');
    const start = await nextXid();
    const lost = await send(call, key);
    proxy.disarm();
    t.equal(proxy.cuts, cuts_before + 1, 'a commit was not heard of');
    const written = await writtenSince(start);
    const [row] = await app.sql`select state from idempotency where key = ${key}`;
    t.equal(row?.['state'], 'done', 'it took effect all the same');
    const again = await send(call, key);
    t.ok(again.status >= 200 && again.status < 300, `${again.status} after ${lost.status}`);
    t.equal(again.headers.get('idempotency-replayed'), 'true');
    t.same(await writtenSince(start), written, 'nothing else was written');
  });
}
