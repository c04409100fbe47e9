import { startApp } from '../../help/app.js';
import { makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';

t.test('a sitemap has every published question once, in pages by their ids', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const id = await makeOpenQuestion(app);
  const draft = await makeOpenQuestion(app, { publish: false });
  await app.sql`
    insert into questions (
      id, question, category, question_type, status, timeframe, opens_at, closes_at,
      resolution_date, published_at
    )
    select
      gen_random_uuid(), q.question, q.category, q.question_type, q.status, q.timeframe,
      q.opens_at, q.closes_at, q.resolution_date, q.published_at
    from questions q, generate_series(1, 2500)
    where q.id = ${id}`;
  const read = async (path: string): Promise<string[]> => {
    const { status, headers, body } = await app.call('GET', path);
    t.equal(status, 200, path);
    t.equal(headers.get('content-type'), 'application/xml; charset=utf-8');
    return [...body.matchAll(/<loc>([^<]*)<\/loc>/g)].map(([, url]) => String(url));
  };
  const [pages = '', ...parts] = await read('/sitemap.xml');
  t.ok((await read(new URL(pages).pathname)).includes(`${app.url}/questions`));
  t.equal(parts.length, 2);
  const found: string[] = [];
  for (const part of parts) found.push(...(await read(part.slice(app.url.length))));
  t.equal(found.length, 2_501);
  t.equal(new Set(found).size, 2_501);
  t.ok(found.includes(`${app.url}/questions/${id}`));
  t.notOk(found.includes(`${app.url}/questions/${draft}`));
  const empty = await app.call('GET', '/sitemap/questions.xml?from=nothing');
  t.match(empty, { status: 400, body: { code: 'INVALID_REQUEST' } });
});
