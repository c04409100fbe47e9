import { startApp } from '../../help/app.js';
import { recomputeConsensus } from '../../help/consensus-oracle.js';
import { act } from '../../help/settling.js';
import { makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { connect } from '../../help/ws-client.js';
import { makeForecasters, place } from '../briefs/world.js';
import { fetchBytes, readLines } from '../exports/world.js';

/**
 * On this question most agents rank one option first, while the mean of the distributions favours
 * another. Every place that shows a probability shows the mean of the distributions.
 */

const app = await startApp(t, {
  roles: ['api', 'relay', 'timer'],
  env: { LIMIT_EXPORTS: '100000' },
});
const options = ['Anthropic', 'Google', 'OpenAI'];
const id = await makeOpenQuestion(app, { question_type: 'multi', options });
const stated = [
  { probabilities: { Anthropic: 40, Google: 35, OpenAI: 25 } },
  { probabilities: { Google: 35, OpenAI: 25, Anthropic: 40 } },
  { probabilities: { Anthropic: 40, Google: 35, OpenAI: 25 } },
  { probabilities: { Anthropic: 5, Google: 85, OpenAI: 10 } },
  // The other options share the rest evenly: 20 and 20, then 19.5 and 19.5.
  { selected_option: 'OpenAI', confidence: 60 },
  { selected_option: 'OpenAI', confidence: 61 },
];
const socket = await connect(t, app.port);
socket.send({ op: 'subscribe', topics: [`consensus:${id}`] });
const forecasters = await makeForecasters(app, stated.length);
for (const [n, { key }] of forecasters.entries()) await place(app, { key, id, ...stated[n] });

// These are (120 + 5 + 20 + 19.5) / 6, (105 + 85 + 20 + 19.5) / 6 and (75 + 10 + 60 + 61) / 6.
const means = [27.42, 38.25, 34.33];
const shares = [50, 16.67, 33.33];
const headline = { forecast: 38.25, leading_option: 'Google', yes_percent: 16.67 };

const get = async (path: string) => (await app.call('GET', path)).body;
const whole = async (path: string) =>
  until('all are counted', async () => {
    const body = await get(path);
    return body.total_predictions === stated.length && body;
  });

const textOf = (page: string): string =>
  page
    .replace(/<(head|style)>.*?<\/\1>/gs, '')
    .replaceAll(/<script>.*<\/script>/gs, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ');

const consensus = await whole(`/api/questions/${id}/consensus`);

t.test('the consensus, by SQL as well, and its state topic', async (t) => {
  const { offset: _, updated_at: __, scale: ___, ...rest } = consensus;
  t.strictSame(rest, (await recomputeConsensus(app.sql)).get(id));
  t.match(consensus, { ...headline, yes_count: 1, no_count: 5, mean_probability: null });
  t.match(
    consensus.options,
    options.map((option, n) => ({ option, percent: shares[n], mean_probability: means[n] })),
  );
  const claude = { model_family: 'claude', count: 2, option_probabilities: [29.75, 27.25, 43] };
  t.match(consensus.model_breakdown[0], claude);
  await until('the newest delta', () => socket.frames.at(-1)?.['version'] === consensus.offset);
  const followed = socket.frames.map((frame) => frame['data'] ?? frame['set'] ?? {});
  t.strictSame(Object.assign({}, ...followed), consensus);
});

t.test('the chart, as points and as pictures', async (t) => {
  const chart = await whole(`/api/questions/${id}/chart`);
  const figures = { option_probabilities: means, option_percents: shares };
  t.match(chart.points.at(-1), { ...headline, ...figures });
  const svg = textOf(await get(`/api/questions/${id}/chart.svg`));
  t.match(svg, /Google leads with a mean of 38\.25 %/);
  for (const [n, option] of options.entries()) t.match(svg, `${option}: ${means[n]} %`);
  for (const share of shares.slice(1)) t.notMatch(svg, `${share} %`);
  t.equal((await app.call('GET', `/api/questions/${id}/chart.png`)).status, 200);
});

t.test('the widget, in every view', async (t) => {
  const card = textOf(await get(`/embed/${id}`));
  t.match(card, /38% chance of Google Anthropic 27% Google 38% OpenAI 34%/);
  t.match(card, /Google by model family, with the number of forecasts claude 2 27%/);
  t.match(textOf(await get(`/embed/${id}?view=compact`)), /38% chance of Google/);
  const chart = textOf(await get(`/embed/${id}?view=chart`));
  t.match(chart, /38% chance of Google .* Google 38% OpenAI 34% Anthropic 27%/);
  for (const page of [card, chart]) t.notMatch(page, /\b(?:50|17|33)% (?!0%|25%)/);
});

t.test('the brief', async (t) => {
  const brief = await get(`/api/questions/${id}/intel-brief`);
  t.equal(brief.headline[0], '6 predictions give Google 38 % on average.');
  t.match(brief.state, { position: 'Google', forecast: 38.25, share: 16.67 });
  t.match(
    brief.state.options,
    options.map((option, n) => ({ option, percent: shares[n], mean_probability: means[n] })),
  );
  t.equal(brief.momentum.measure, 'the mean probability of Google');
  t.equal(brief.momentum.windows[0].to, 38.25);
  t.match(brief.families.rows[0], { model_family: 'claude', mean_probability: 27.25 });
  const markdown = { headers: { accept: 'text/markdown' } };
  const text = (await app.call('GET', `/api/questions/${id}/intel-brief`, markdown)).body;
  t.match(text, /\| Google \| 38 % \| 1 \| 17 % \|/);
});

t.test('exports, snapshots, and the day on which it resolves', async (t) => {
  const exported = await until('all can be exported', async () => {
    const query = `question_id=${id}`;
    const { bytes } = await fetchBytes(`${app.url}/api/export/consensus-history?${query}`);
    const rows = readLines(bytes.toString());
    return rows.length === stated.length && rows;
  });
  const figures = { options, option_probabilities: means, option_percents: shares };
  t.match(exported.at(-1), { ...headline, ...figures });

  await act(app, id, 'close');
  const decision = { correct_options: ['Google'], resolution_note: 'As reported.' };
  await act(app, id, 'resolve', decision);
  await until('it is settled', async () => {
    const [row] = await app.sql`select state from resolutions where question_id = ${id}`;
    return row?.['state'] === 'done';
  });
  const snapshots = await until('the snapshots', async () => {
    const body = await get(`/api/questions/${id}/snapshots`);
    return body.total >= 2 && body.snapshots;
  });
  for (const one of snapshots) t.match(one, { ...headline, options: consensus.options });

  // Daily insights cover events up to the current minute.
  const at = new Date(Date.now() - 120_000);
  await app.sql`update resolutions set created_at = ${at}`;
  const day = await get(`/api/insights/daily?date=${at.toISOString().slice(0, 10)}`);
  t.match(day.resolved.questions, [{ question_id: id, outcome: 'Google', crowd: 38.25 }]);
  const brief = await get(`/api/questions/${id}/intel-brief`);
  t.match(brief.headline.at(-1), /The predictions gave it 38 % on average\.$/);
  t.match(
    textOf(await get(`/embed/${id}`)),
    /Google The crowd was right\. Last forecast: 38% for Google/,
  );
});
