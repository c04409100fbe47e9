import type { Test } from 'tap';
import { percentText } from '../../../src/features/briefs/sentences.js';
import { type CallOptions, startApp, type TestApp } from '../../help/app.js';
import { recomputeConsensus } from '../../help/consensus-oracle.js';
import { hostile_markdown } from '../../help/hostile-markdown.js';
import { blocksOf, findMarkup } from '../../help/markdown.js';
import { pluck } from '../../help/pluck.js';
import { act } from '../../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { briefPath, makeForecasters, makeText, place } from './world.js';

/** Intel briefs as readers get them. */

const app = await startApp(t, { roles: ['api', 'relay', 'timer'] });
const markdown = { headers: { accept: 'text/markdown' } };
const read = async (id: string, options: CallOptions = {}, from = app) =>
  (await from.call('GET', briefPath(id), options)).body;

const readWhole = (id: string, total: number, from: TestApp = app) =>
  until('all are counted', async () => {
    const body = await read(id, {}, from);
    return body.state.total_predictions === total && body;
  });

const titlesOf = (text: string): readonly string[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('## '))
    .map((line) => line.slice(3));

t.test('a question without predictions has a brief that says so', async (t) => {
  const id = await makeOpenQuestion(app, { description: 'Decided by the notice at the door.' });
  const { status, body } = await app.call('GET', briefPath(id));
  t.equal(status, 200);
  t.match(body, {
    question_id: id,
    status: 'open',
    offset: 0,
    notes: [],
    state: { total_predictions: 0, position: null, share: null },
    momentum: { windows: [] },
    arguments: { for: [], against: [] },
    minority: { count: 0, case: null },
    sources: { distinct: 0 },
    voices: { rows: [] },
  });
  t.equal(body.headline[0], 'No agent has predicted on it yet.');
  t.match(body.headline[1], /^It accepts predictions until .* UTC \(in \d+ days\) and resolves by/);
  const text = await read(id, markdown);
  t.same(titlesOf(text), ['In short', 'Resolution']);
  t.match(text, /> Criteria: “Decided by the notice at the door\.”/);
});

t.test('a brief has every section, from data', async (t) => {
  const id = await makeOpenQuestion(app, { resolution_source: 'The town clerk' });
  const [a, b, c, d] = await makeForecasters(app, 4);
  if (!(a && b && c && d)) throw new Error('too few forecasters');
  const shared = 'See https://town.records-office.org/minutes/4 too.';
  const first = await place(app, {
    key: a.key,
    id,
    prediction: true,
    confidence: 80,
    reasoning: makeText({ evidence: `Alpha. ${shared}`, counter: 'Bricks', bottom: 'Firmly' }),
  });
  const second = await place(app, {
    key: b.key,
    id,
    prediction: true,
    confidence: 70,
    reasoning: makeText({ evidence: `Beta. ${shared}`, bottom: 'Somewhat' }),
  });
  const against = await place(app, {
    key: c.key,
    id,
    prediction: false,
    confidence: 90,
    reasoning: makeText({ bottom: 'Hardly' }),
  });
  await app.call('POST', `/api/predictions/${second}/upvote`, { key: d.key });
  const brief = await readWhole(id, 3);
  const { forecast } = await computed(id);
  t.equal(brief.state.forecast, forecast);
  t.equal(brief.headline[0], `Combined, 3 predictions give YES ${percentText(forecast)}.`);
  t.match(brief.state, { position: 'YES', share: 66.67, mean_probability: 53.33 });
  t.match(brief.state, { median_probability: 70, p25: Number, p75: Number });
  t.same(
    brief.momentum.windows.map(({ name, from, to }: Record<string, unknown>) => [name, from, to]),
    ['1d', '7d', '30d'].map((name) => [name, null, forecast]),
  );
  t.equal(brief.headline[1], 'All 3 predictions came in the last day.');
  t.match(
    brief.headline[2],
    /^Among 3 model families, claude \(80 %\) is highest on YES and gemini/,
  );
  t.same(pluck(brief.families.rows, 'model_family'), ['claude', 'gemini', 'gpt']);
  const ids = (list: { prediction_id: string }[]) => list.map((one) => one.prediction_id);
  t.same(ids(brief.arguments.for), [second, first], 'the one with a vote first');
  t.same(ids(brief.arguments.against), [against]);
  t.match(brief.arguments.for[1].bottom_line.quote, /^Firmly /);
  t.match(brief.arguments.for[1].evidence.quote, /^Alpha\. See \[1\] too\./);
  t.equal(brief.arguments.for[1].sources[0], 'https://town.records-office.org/minutes/4');
  t.match(brief.minority, { position: 'NO', count: 1, case: { prediction_id: against } });
  t.equal(brief.headline[3], '1 prediction (33 %) is on NO.');
  t.match(brief.sources, { looked_at: 3, distinct: 7, unique: 6 });
  t.match(brief.sources.shared, [
    {
      url: 'https://town.records-office.org/minutes/4',
      predictions: 2,
      families: 2,
      positions: [{ position: 'YES', predictions: 2 }],
    },
  ]);
  t.equal(brief.voices.rows.length, 3);
  t.match(brief.voices.rows[0].record, { resolved: 0, brier: null });
  t.match(brief.would_change.items[1].quote, /^Bricks /);
  t.match(brief.resolution, { resolution_source: 'The town clerk', outcome: null });
  t.match(brief.notes[0], /^With only 3 predictions, each one moves these figures a lot\.$/);

  const text = await read(id, markdown);
  t.same(titlesOf(text), [
    'In short',
    'Current state',
    'Model families',
    'The case for YES',
    'The case for NO',
    'The minority',
    'Counter-evidence',
    'Sources',
    'Resolution',
    'How far to trust this',
  ]);
  const same = await app.call('GET', `${briefPath(id)}?format=markdown`);
  t.equal(same.body, text, 'by query as by Accept');
  t.equal(same.headers.get('content-type'), 'text/markdown; charset=utf-8');
  const json = await app.call('GET', `${briefPath(id)}?format=json`, markdown);
  t.equal(json.body.question_id, id, 'the query is stronger');
  t.equal((await app.call('GET', `${briefPath(id)}?format=pdf`)).status, 400);
});

t.test('the same input makes the same bytes in every process', async (t) => {
  const id = await makeOpenQuestion(app);
  const forecasters = await makeForecasters(app, 3);
  for (const [n, { key }] of forecasters.entries()) {
    await place(app, { key, id, prediction: n > 0, confidence: 60 + n });
  }
  await readWhole(id, 3);
  const other = await startApp(t, { stores: app.stores, roles: ['api'] });
  // A brief names its hour. If the hour ends between the two calls, both are made again.
  const pair = await until('both of one hour', async () => {
    const [one, two] = await Promise.all([
      app.call('GET', briefPath(id)),
      other.call('GET', briefPath(id)),
    ]);
    return one.body.as_of === two.body.as_of ? [one, two] : undefined;
  });
  t.strictSame(pair[0]?.body, pair[1]?.body);
  t.equal(pair[0]?.headers.get('etag'), pair[1]?.headers.get('etag'));
  const texts = await Promise.all(
    [app, other, app].map(async (one) => (await one.call('GET', briefPath(id), markdown)).body),
  );
  t.equal(texts[0], texts[1]);
  t.equal(texts[0], texts[2]);
});

t.test('a tag stands for one form of one state', async (t) => {
  const id = await makeOpenQuestion(app);
  const first = await app.call('GET', briefPath(id));
  const tag = first.headers.get('etag') ?? '';
  t.match(first.headers.get('vary'), /Accept/);
  const again = { headers: { 'if-none-match': tag } };
  t.equal((await app.call('GET', briefPath(id), again)).status, 304);
  const other = { headers: { 'if-none-match': tag, accept: 'text/markdown' } };
  t.equal((await app.call('GET', briefPath(id), other)).status, 200);
  const [forecaster] = await makeForecasters(app, 1);
  await place(app, { key: forecaster?.key ?? '', id, prediction: true, confidence: 66 });
  await readWhole(id, 1);
  t.equal((await app.call('GET', briefPath(id), again)).status, 200);
});

/** The figures of a question, computed from its record. */
const computed = async (id: string) =>
  (await recomputeConsensus(app.sql)).get(id) as {
    readonly forecast: number;
    readonly options: readonly { readonly forecast: number }[];
  };

const lives = async (t: Test, type: 'binary' | 'multi') => {
  const options = ['Copper', 'Tin', 'Zinc'];
  const id = await makeOpenQuestion(app, type === 'multi' ? { question_type: type, options } : {});
  const forecasters = await makeForecasters(app, 3);
  for (const [n, { key }] of forecasters.entries()) {
    const stated =
      type === 'multi' ? { selected_option: n === 2 ? 'Tin' : 'Copper' } : { prediction: n < 2 };
    await place(app, { key, id, ...stated, confidence: 75 });
  }
  const open = await readWhole(id, 3);
  t.match(open.headline.at(-1), /^It accepts predictions until/);
  await act(app, id, 'close');
  const closed = await read(id);
  t.match(closed, { status: 'closed', headline: [], reasoning_hidden: false });
  t.match(closed.headline.at(-1), /^It stopped accepting predictions on .* and resolves by/);
  const outcome = type === 'multi' ? { correct_options: ['Tin'] } : { outcome: true };
  await act(app, id, 'resolve', outcome);
  const resolved = await read(id);
  t.equal(resolved.status, 'resolved');
  t.same(resolved.would_change.items, [], 'nothing changes it any more');
  t.match(resolved.disputes, { open: 0, items: [] });
  return { id, forecasters, open, resolved };
};

t.test('a yes/no question through its life, disputed at the end', async (t) => {
  const { id, forecasters, resolved } = await lives(t, 'binary');
  // The median is 75 %. With three owners, n = 1 / (0.6 + 0.4 / 3) and d = 1.1436. The mean log odds
  // are ln(3) / 3, so the others are 59.05, 60.32 and 59.69 %. The mean of the four is 63.51 %, and
  // (1 − 0.6351)² = 0.133.
  t.match(resolved.resolution, { outcome: 'YES', brier: 0.133 });
  t.match(
    resolved.headline.at(-1),
    /^It resolved to YES on .*\. Combined, the predictions gave it 64 %: a Brier score of 0\.133\.$/,
  );
  const reason = 'The notice named another date than the one that was decided by; see the record.';
  const filed = await app.call('POST', `/api/questions/${id}/dispute`, {
    key: forecasters[2]?.key ?? '',
    body: { reason, evidence_urls: ['https://town.records-office.org/notice/7'] },
  });
  t.equal(filed.status, 201);
  const disputed = await until('the dispute is told', async () => {
    const body = await read(id);
    return body.disputes?.open === 1 && body;
  });
  t.match(disputed.disputes, { open: 1, items: [{ quote: reason }] });
  t.match(await read(id, markdown), /## Disputes\n\n\*\*.*\n\n> “The notice named another date/);
  await act(app, id, 'resolve', { outcome: false, resolution_note: 'Read anew.' });
  const anew = await read(id);
  t.match(
    anew.headline.at(-1),
    /^It resolved to NO on .* \(revision 2\)\. Combined, the predictions gave it 36 %/,
  );
});

t.test('a question with options through its life', async (t) => {
  const { id, open, resolved } = await lives(t, 'multi');
  const { forecast, options } = await computed(id);
  // Copper has (75 + 75 + 12.5) / 3 = 54.17 %, and Tin has (12.5 + 12.5 + 75) / 3.
  t.equal(open.headline[0], `Combined, 3 predictions give Copper ${percentText(forecast)}.`);
  t.match(open.state, { position: 'Copper', forecast, share: 66.67 });
  t.match(open.state.options, [
    { option: 'Copper', count: 2, percent: 66.67, mean_probability: 54.17 },
    { option: 'Tin', count: 1, percent: 33.33, mean_probability: 33.33 },
    { option: 'Zinc', count: 0, percent: 0, mean_probability: 12.5 },
  ]);
  t.equal(open.momentum.measure, 'the chance of Copper');
  t.match(open.arguments, { for: [{ position: 'Copper' }], against: [{ position: 'Tin' }] });
  t.match(open.minority, { position: 'Tin', count: 1 });
  t.match(resolved.resolution, { outcome: 'Tin', brier: null });
  const tin = percentText(options[1]!.forecast);
  t.match(resolved.headline.at(-1), `Combined, the predictions gave it ${tin}.`);
});

t.test('a void question, and a draft that only its people see', async (t) => {
  const id = await makeOpenQuestion(app);
  await act(app, id, 'void', { resolution_note: 'It was asked twice.' });
  const body = await read(id);
  t.match(body.headline.at(-1), /^It was voided on .* and is not scored\.$/);
  t.match(body.resolution, { outcome: null, resolution_note: 'It was asked twice.' });
  const draft = await makeOpenQuestion(app, { publish: false });
  t.equal((await app.call('GET', briefPath(draft))).status, 404);
  const shown = await app.call('GET', briefPath(draft), { admin: true });
  t.match(shown.body.headline, [
    'No agent has predicted on it yet.',
    'It is a draft and accepts no',
  ]);
  t.equal((await app.call('GET', briefPath('nonsense'))).status, 404);
});

t.test('what moderation hides is in no brief from that moment on', async (t) => {
  const id = await makeOpenQuestion(app);
  const [forecaster] = await makeForecasters(app, 1);
  const reasoning = makeText({ evidence: 'Quarry', counter: 'Quarry', bottom: 'Quarry' });
  const said = { key: forecaster?.key ?? '', id, prediction: true, confidence: 77, reasoning };
  const pid = await place(app, said);
  const seen = await until('all is there', async () => {
    const body = await read(id);
    return body.arguments.for.length === 1 ? body : undefined;
  });
  t.match(JSON.stringify(seen), /Quarry.*Quarry/);
  const hidden = await app.call('POST', `/api/admin/predictions/${pid}/hide`, {
    admin: true,
    body: { reason: 'Private.' },
  });
  t.equal(hidden.status, 200);
  const body = await read(id);
  t.notMatch(JSON.stringify(body), /Quarry/);
  t.match(body, { state: { total_predictions: 1 }, arguments: { for: [] }, voices: { rows: [] } });
  t.ok(body.notes.some((note: string) => note.startsWith('1 prediction is hidden by moderators')));
});

t.test('with HIDE_REASONING nothing of the reasoning shows before one has predicted', async (t) => {
  const env = { HIDE_REASONING: 'true' };
  const hiding = await startApp(t, { roles: ['api', 'relay'], env });
  const id = await makeOpenQuestion(hiding);
  const [a, b] = await makeForecasters(hiding, 2);
  if (!(a && b)) throw new Error('too few forecasters');
  const reasoning = makeText({ evidence: 'Quarry', counter: 'Quarry', bottom: 'Quarry' });
  await place(hiding, { key: a.key, id, prediction: true, confidence: 77, reasoning });
  const brief = await readWhole(id, 1, hiding);
  t.match(brief, { reasoning_hidden: true, sources: { distinct: 0, looked_at: 0 } });
  t.notMatch(JSON.stringify(brief), /Quarry|https:/);
  t.notMatch(await read(id, markdown, hiding), /Quarry|https:/);
  const own = await hiding.call('GET', briefPath(id), { key: a.key });
  t.match(JSON.stringify(own.body), /Quarry/);
  t.match(own.headers.get('vary'), /Accept, X-API-Key/);
  t.notMatch(JSON.stringify(await read(id, { key: b.key }, hiding)), /Quarry/);
  await act(hiding, id, 'close');
  t.match(JSON.stringify(await read(id, {}, hiding)), /Quarry/);
});

t.test('words of agents stay words, whatever they are', async (t) => {
  const [forecaster] = await makeForecasters(app, 1);
  const author = await makeAgent(app, { human: await makeHuman(app), name: '[x](y) *b* <b>' });
  const problems: unknown[] = [];
  const texts = hostile_markdown.filter((text) => !text.includes('\u0007'));
  for (let n = 0; n < texts.length; n += 6) {
    const some = texts.slice(n, n + 6).join('\n\n');
    const id = await makeOpenQuestion(app, {
      question: `Will ${texts[n]} be read as it is written here?`,
      description: some,
    });
    const key = n % 12 === 0 ? author.key : (forecaster?.key ?? '');
    await place(app, {
      key,
      id,
      prediction: true,
      confidence: 71,
      reasoning: makeText({ evidence: some, counter: some, bottom: some }),
    });
    await readWhole(id, 1);
    const text = await read(id, markdown);
    const { headings, ...others } = blocksOf(text);
    const titles =
      /^(?:# .*|## (?:In short|The case for YES|Counter-evidence|Sources|Leading voices|Resolution|How far to trust this))$/;
    problems.push(...headings.filter((line) => !titles.test(line)));
    problems.push(...Object.values(others).flat());
    for (const line of text.split('\n')) {
      if (line.startsWith('| ')) continue;
      problems.push(...findMarkup(line).map((what) => ({ what, line })));
    }
    const body = await read(id);
    const quotes = [body.arguments.for[0].bottom_line.quote, body.arguments.for[0].evidence.quote];
    for (const quote of quotes) if (quote.length > 450) problems.push(quote);
  }
  t.same(problems, []);
});
