import { parseFeed } from '@rowanmanning/feed-parser';
import fc from 'fast-check';
import { SaxesParser } from 'saxes';
import { escapeXml, writeFeed } from '../../../src/features/log/feeds.js';
import { type Answered, startApp } from '../../help/app.js';
import { oddText } from '../../help/arbitrary.js';
import { makeEntry } from '../../help/log.js';
import { pluck } from '../../help/pluck.js';
import { holds } from '../../help/property.js';
import { act } from '../../help/settling.js';
import { makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** The Atom feeds, read by third-party parsers. */

/** Every element with its text, in order. Throws if the XML is not well-formed. */
const readXml = (xml: string): [name: string, text: string][] => {
  const found: [string, string][] = [];
  const open: [string, string][] = [];
  const parser = new SaxesParser({ xmlns: true });
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name }) => open.push([name, '']));
  parser.on('text', (text) => {
    const inner = open.at(-1);
    if (inner !== undefined) inner[1] += text;
  });
  parser.on('closetag', () => found.push(open.pop() as [string, string]));
  parser.write(xml).close();
  return found;
};

const textsOf = (xml: string, name: string): string[] =>
  readXml(xml)
    .filter(([one]) => one === name)
    .map(([, text]) => text);

/** The requirements of RFC 4287 for a feed and its entries. */
const checkAtom = (xml: string): string[] => {
  const problems: string[] = [];
  const feed = xml.slice(0, xml.indexOf('<entry>') === -1 ? undefined : xml.indexOf('<entry>'));
  const entries = xml.split('<entry>').slice(1);
  const count = (text: string, tag: string): number => text.split(`<${tag}>`).length - 1;
  for (const [name, part] of [['feed', feed], ...entries.map((one) => ['entry', one])] as const) {
    for (const tag of ['id', 'title', 'updated']) {
      if (count(part as string, tag) !== 1) problems.push(`${name} without one ${tag}`);
    }
  }
  const ids = textsOf(xml, 'id');
  if (new Set(ids).size !== ids.length) problems.push('an id twice');
  for (const id of ids)
    if (!/^(urn:uuid:[0-9a-f-]{36}|https?:\/\/\S+)$/.test(id)) problems.push(id);
  for (const time of textsOf(xml, 'updated')) {
    if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(time)) problems.push(time);
  }
  if (!/<link rel="self" type="application\/atom\+xml" href="[^"]+"\/>/.test(feed)) {
    problems.push('no link to itself');
  }
  if (!feed.includes('<author><name>')) problems.push('no author');
  return problems;
};

const app = await startApp(t, { roles: ['api', 'relay', 'timer'] });

const untilLogged = () =>
  until('the log has all', async () => (await app.sql`select from outbox`).length === 0);

const isFeed = ({ status, headers }: Answered): boolean =>
  status === 200 && headers.get('content-type') === 'application/atom+xml; charset=utf-8';

t.test('drafts have no feed and are in none', async (t) => {
  const draft = await makeOpenQuestion(app, { publish: false });
  const path = `/questions/${draft}/feed.xml`;
  const absent = { status: 404, body: { code: 'QUESTION_NOT_FOUND' } };
  t.match(await app.call('GET', path), absent);
  t.match(await app.call('GET', path, { admin: true }), absent, 'for everybody or nobody');
  t.match(await app.call('GET', '/questions/nothing/feed.xml'), absent);
  const empty = await app.call('GET', '/feed.xml');
  t.same(checkAtom(empty.body), []);
  t.equal(parseFeed(empty.body).items.length, 0);
  await app.call('POST', `/api/admin/questions/${draft}/publish`, { admin: true, body: {} });
  await untilLogged();
  t.ok(isFeed(await app.call('GET', path)));
  t.equal(parseFeed((await app.call('GET', '/feed.xml')).body).items.length, 1);
});

t.test('a feed tells of questions published and resolved, as the log has them', async (t) => {
  const [first, second] = [
    await makeOpenQuestion(app, { category: 'society' }),
    await makeOpenQuestion(app, { category: 'industry', subcategory: 'public_sector' }),
  ];
  await untilLogged();
  await act(app, first, 'close');
  await act(app, first, 'resolve', { outcome: true, resolution_note: 'As the register says.' });
  await untilLogged();
  const answer = await app.call('GET', '/feed.xml');
  t.ok(isFeed(answer));
  t.same(checkAtom(answer.body), []);
  const feed = parseFeed(answer.body);
  t.equal(feed.meta.type, 'atom');
  t.equal(feed.title, 'Prediction Forum');
  t.equal(feed.self, `${app.url}/feed.xml`);
  const { body } = await app.call('GET', '/api/events?events=question.created,question.resolved');
  const logged = [...body.events].reverse();
  t.same(
    feed.items.map(({ id, published, url }) => ({ id, at: published?.toISOString(), url })),
    logged.map(({ id, timestamp, data }) => ({
      id: `urn:uuid:${id}`,
      at: timestamp,
      url: `${app.url}/questions/${data.question_id}`,
    })),
  );
  t.match(feed.items[0]?.title, /^Resolved: Yes – Will the reading room/);
  t.same(textsOf(answer.body, 'log:offset').map(Number), pluck(logged, 'offset'));
  const published = textsOf(answer.body, 'log:data').map((text) => JSON.parse(text));
  t.same(published, pluck(logged, 'data'));
  const industry = parseFeed((await app.call('GET', '/feed.xml?category=industry')).body);
  t.same(pluck(industry.items, 'url'), [`${app.url}/questions/${second}`]);
  t.equal(industry.self, `${app.url}/feed.xml?category=industry`);
  const unknown = await app.call('GET', '/feed.xml?category=nothing');
  t.match(unknown, { status: 400, body: { code: 'INVALID_CATEGORY' } });

  const life = await app.call('GET', `/questions/${first}/feed.xml`);
  t.ok(isFeed(life));
  t.same(checkAtom(life.body), []);
  t.same(textsOf(life.body, 'log:event'), [
    'question.resolved',
    'question.closed',
    'question.created',
  ]);
  t.equal(parseFeed(life.body).items.length, 3);
});

t.test('a feed of new questions leaves out how others ended', async (t) => {
  const app = await startApp(t);
  const ended = await makeOpenQuestion(app, {
    question: 'Will the old pier be open again in May?',
  });
  await act(app, ended, 'close');
  await act(app, ended, 'void', { resolution_note: 'The pier was sold to another harbour.' });
  const titlesOf = async (query: string) => {
    const { status, body } = await app.call('GET', `/feed.xml${query}`);
    t.equal(status, 200);
    return textsOf(String(body), 'title').slice(1);
  };
  await until('both events', async () => (await titlesOf('')).length === 2);
  t.same(await titlesOf('?events=question.created'), [
    'New: Will the old pier be open again in May?',
  ]);
  t.same(await titlesOf('?events=question.created&category=industry'), []);
  t.equal((await app.call('GET', '/feed.xml?events=prediction.placed')).status, 400);
});

t.test('what has not changed is not sent again', async (t) => {
  const id = await makeOpenQuestion(app);
  await untilLogged();
  for (const path of ['/feed.xml', `/questions/${id}/feed.xml`, '/feed.xml?category=society']) {
    const first = await app.call('GET', path);
    const etag = first.headers.get('etag') ?? '';
    const options = { headers: { 'if-none-match': etag } };
    const again = await app.call('GET', path, options);
    t.match(again, { status: 304, body: '' });
    t.equal(again.headers.get('etag'), etag);
    const head = await app.call('HEAD', path);
    t.equal(head.headers.get('content-length'), String(Buffer.byteLength(first.body)));
  }
  const before = await app.call('GET', '/feed.xml');
  await makeOpenQuestion(app);
  await untilLogged();
  const headers = { 'if-none-match': before.headers.get('etag') ?? '' };
  const after = await app.call('GET', '/feed.xml', { headers });
  t.equal(after.status, 200);
  t.same(textsOf(after.body, 'id').slice(2), textsOf(before.body, 'id').slice(1), 'ids stay');
});

t.test('hostile text stays text', async (t) => {
  const question = `]]></title><script>alert(1)</script>&amp; "quoted" 'it' <![CDATA[ &#0; 💡 ü`;
  const options = ['<b>', '&lt;', ']]>'];
  const id = await makeOpenQuestion(app, { question, question_type: 'multi', options });
  await untilLogged();
  for (const path of ['/feed.xml', `/questions/${id}/feed.xml`]) {
    const { body } = await app.call('GET', path);
    t.same(checkAtom(body), []);
    t.ok(textsOf(body, 'title').includes(`New: ${question}`));
    const names = new Set(readXml(body).map(([name]) => name));
    t.notOk(names.has('script'));
    t.same(JSON.parse(textsOf(body, 'log:data')[0] ?? '').options, options);
  }
});

t.test('any text makes well-formed XML, and comes out as it was', async (t) => {
  const at = new Date(0).toISOString();
  const property = fc.property(oddText(0, 60), oddText(0, 60), (title, option) => {
    const data = { question: title, options: [option], closes_at: at };
    const event = 'question.created';
    const body = JSON.stringify({ event, data, timestamp: at });
    const xml = writeFeed({
      page: '/questions',
      id: 'http://forum/feed.xml',
      title,
      subtitle: option,
      public_url: 'http://forum',
      href: `http://forum/?${title}`,
      since: new Date(0),
      events: [{ ...makeEntry(1), event, category: title, body }],
    });
    const valid = title.replaceAll(
      /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu,
      '\u{fffd}',
    );
    const [own, ofEntry] = textsOf(xml, 'title');
    return own === valid && ofEntry === `New: ${valid}`;
  });
  await holds(t, property as never, { numRuns: 300 });
  t.equal(escapeXml('\u0000\ud800\ufffe<'), '\ufffd\ufffd\ufffd&lt;');
});
