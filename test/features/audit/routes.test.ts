import { acts } from '../../../src/features/audit/schema.js';
import { startApp } from '../../help/app.js';
import { admin_email } from '../../help/principals.js';
import { makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';

/** Admin actions are written to the audit log, with details, and stay there. */

const app = await startApp(t, { roles: ['api'], env: { ADMIN_EMAILS: admin_email } });
const read = async (query = '') => {
  const { status, body } = await app.call('GET', `/api/admin/audit${query}`, { admin: true });
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body;
};

t.test('each act of an admin has its line, and one that changed nothing has none', async (t) => {
  const person = await makeHuman(app, admin_email);
  const id = await makeOpenQuestion(app, { publish: false });
  const publish = () =>
    app.call('POST', `/api/admin/questions/${id}/publish`, { token: person.token });
  t.equal((await publish()).status, 200);
  t.equal((await publish()).status, 409);
  const tags = { subcategory: 'data', tags: ['#Audit', '#Privacy'] };
  for (const _ of [1, 2]) {
    await app.call('POST', '/api/admin/taxonomy/tags', { admin: true, body: tags });
  }
  const { total, acts: lines } = await read();
  t.equal(total, 3);
  t.match(lines, [
    { act: 'taxonomy.add_tags', admin: 'admin', subject_id: 'data', details: { tags: ['#Audit'] } },
    { act: 'question.publish', admin: /^human:/, subject_id: id, question_id: id },
    { act: 'question.create', admin: 'admin', subject_id: id, details: { status: 'draft' } },
  ]);
  t.equal((await read(`?admin=${encodeURIComponent(lines[1].admin)}`)).total, 1);
  t.equal((await read(`?act=question.create`)).total, 1);
  t.equal((await read(`?subject_id=${id}`)).total, 2);
  t.equal((await read(`?question_id=${id}&act=question.publish`)).total, 1);
  t.equal((await read(`?since=${lines[0].at}`)).total, 1);
  t.equal((await read(`?until=${lines[2].at}`)).total, 0);
});

t.test('an import records each question that it made, once', async (t) => {
  const closes_at = new Date(Date.now() + 86_400_000).toISOString();
  const item = (n: number) => ({
    question: `Will the imported ferry number ${n} sail on schedule?`,
    category: 'society',
    closes_at,
    source: 'audit',
    source_id: `${n}`,
  });
  for (const _ of [1, 2]) {
    const body = { items: [item(1), item(2), { question: 'short' }] };
    await app.call('POST', '/api/admin/questions/import', { admin: true, body });
  }
  t.equal((await read('?act=question.import')).total, 2);
});

t.test('pages follow each other without a gap while lines are added', async (t) => {
  for (let n = 0; n < 5; n += 1) await makeOpenQuestion(app);
  const all: string[] = (await read('?limit=100')).acts.map(({ id }: { id: string }) => id);
  const seen: string[] = [];
  let cursor = '';
  do {
    const page = await read(`?limit=3${cursor}`);
    t.ok(page.acts.length <= 3);
    seen.push(...page.acts.map(({ id }: { id: string }) => id));
    cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`;
    await makeOpenQuestion(app);
  } while (cursor !== '');
  t.same(seen, all);
  for (const query of ['?limit=-1', '?limit=0', '?act=questionxcreate', '?cursor=no', '?since=x']) {
    const { status } = await app.call('GET', `/api/admin/audit${query}`, { admin: true });
    t.equal(status, 400, query);
  }
});

t.test('Postgres refuses to change, to delete and to empty what was written', async (t) => {
  const before = (await read()).total;
  const only_grows = { code: '42501' };
  await t.rejects(app.sql`update audit_log set reason = 'another'`, only_grows);
  await t.rejects(app.sql`delete from audit_log`, only_grows);
  await t.rejects(app.sql`truncate audit_log`, only_grows);
  t.equal((await read()).total, before);
});

t.test('every act has a name that the table takes', async (t) => {
  for (const act of acts) t.match(act, /^[a-z]+[.][a-z_]+$/);
});
