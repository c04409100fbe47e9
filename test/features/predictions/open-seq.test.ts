import { t } from 'tap';
import { openSeqs } from '../../../src/features/predictions/gate-store.js';
import { makeId } from '../../../src/kit/ids.js';
import { openSql } from '../../../src/kit/pg/client.js';
import { openStores } from '../../help/stores.js';

const { database_url } = await openStores(t);
// One connection: a plan is kept by the connection that made it.
const sql = openSql({ url: database_url, pool: 1, prepare: true, name: 'test' });
t.teardown(() => sql.end({ timeout: 1 }));

const makeQuestion = async (): Promise<string> => {
  const id = makeId();
  await sql`insert into question_seqs (question_id, seq) values (${id}, 0)`;
  return id;
};

/** Rows that were read without an index. */
const countScanned = async (): Promise<number> => {
  await sql`select pg_stat_force_next_flush()`;
  const [row] = await sql<{ scanned: number }[]>`
    select seq_tup_read as scanned from pg_stat_user_tables where relname = 'predictions'`;
  return row?.scanned ?? 0;
};

const openSeq = async (question_id: string) => (await openSeqs(sql, [question_id]))[0];

t.test('a new question is opened without reading the predictions on others', async (t) => {
  // As at the beginning of a forum: questions are opened before there is any prediction.
  for (let n = 0; n < 10; n += 1) {
    t.same(await openSeq(await makeQuestion()), { seq: 0, is_empty: true });
  }
  const large = await makeQuestion();
  await sql`
    insert into predictions (
      question_id, agent_id, id, prediction, probability, confidence, reasoning, citations,
      stake, model_family, body_digest, event_id
    )
    select
      ${large}::uuid, gen_random_uuid(), gen_random_uuid(), true, 70, 70, repeat('x', 200), '{}',
      0, 'gpt', '', gen_random_uuid()
    from generate_series(1, 2000)`;
  await sql`analyze predictions`;
  const before = await countScanned();
  for (let n = 0; n < 10; n += 1) {
    t.same(await openSeq(await makeQuestion()), { seq: 0, is_empty: true });
  }
  t.same(await openSeq(large), { seq: 0, is_empty: false });
  t.equal(await countScanned(), before);
});

t.test('many are opened together, in the order they were asked for', async (t) => {
  const [one, other] = [await makeQuestion(), await makeQuestion()];
  await sql`update question_seqs set seq = 7 where question_id = ${other}`;
  const unknown = makeId();
  t.same(await openSeqs(sql, [other, unknown, one]), [
    { seq: 7, is_empty: true },
    { seq: 0, is_empty: true },
    { seq: 0, is_empty: true },
  ]);
  const [begun] = await sql`select seq from question_seqs where question_id = ${unknown}`;
  t.equal(begun?.['seq'], 0);
});
