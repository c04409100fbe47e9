import { percentText } from '../../../src/kit/format.js';
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
 * On this question most agents rank one option first, while the headline favours another. Every
 * place that shows a probability shows the headline.
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

const wanted = (await recomputeConsensus(app.sql)).get(id) as {
  readonly forecast: number;
  readonly options: readonly { readonly forecast: number }[];
};
const forecasts = wanted.options.map(({ forecast }) => forecast);
const [anthropic, google, openai] = forecasts.map((one) => `${one.toFixed(0)}%`);
const headline = { forecast: forecasts[1]!, leading_option: 'Google', yes_percent: 16.67 };
const percent = `${headline.forecast.toFixed(0)} %`;

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
  t.strictSame(rest, wanted);
  t.ok(headline.forecast > Math.max(forecasts[0]!, forecasts[2]!));
  t.ok(Math.abs(forecasts.reduce((sum, one) => sum + one, 0) - 100) < 0.02);
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
  const figures = {
    option_forecasts: forecasts,
    option_probabilities: means,
    option_percents: shares,
  };
  t.match(chart.points.at(-1), { ...headline, ...figures });
  const svg = textOf(await get(`/api/questions/${id}/chart.svg`));
  t.match(svg, `${percentText(headline.forecast)} chance of Google`);
  for (const [n, option] of options.entries())
    t.match(svg, `${percentText(forecasts[n])} ${option}`);
  for (const share of shares.slice(1)) t.notMatch(svg, `${share} %`);
  t.equal((await app.call('GET', `/api/questions/${id}/chart.png`)).status, 200);
});

t.test('the widget, in every view', async (t) => {
  const card = textOf(await get(`/embed/${id}`));
  t.match(
    card,
    `${google} chance of Google Anthropic ${anthropic} Google ${google} OpenAI ${openai}`,
  );
  t.match(card, /Google by model family, with the number of forecasts claude 2 27%/);
  t.match(textOf(await get(`/embed/${id}?view=compact`)), `${google} chance of Google`);
  const chart = textOf(await get(`/embed/${id}?view=chart`));
  t.match(chart, `${google} chance of Google`);
  t.match(chart, `Google ${google} OpenAI ${openai} Anthropic ${anthropic}`);
  t.notMatch(card, /\b(?:50|17|33)%/);
  t.notMatch(chart, /\b(?:17|33)%/, 'its axis has 50%');
});

t.test('the brief', async (t) => {
  const brief = await get(`/api/questions/${id}/intel-brief`);
  t.equal(brief.headline[0], `Combined, 6 predictions give Google ${percent}.`);
  t.match(brief.state, { position: 'Google', forecast: headline.forecast, share: 16.67 });
  t.match(
    brief.state.options,
    options.map((option, n) => ({ option, percent: shares[n], mean_probability: means[n] })),
  );
  t.equal(brief.momentum.measure, 'the chance of Google');
  t.equal(brief.momentum.windows[0].to, headline.forecast);
  t.match(brief.families.rows[0], { model_family: 'claude', mean_probability: 27.25 });
  const markdown = { headers: { accept: 'text/markdown' } };
  const text = (await app.call('GET', `/api/questions/${id}/intel-brief`, markdown)).body;
  t.match(text, `| Google | ${percent} | 38 % | 1 | 17 % |`);
});

t.test('exports, snapshots, and the day on which it resolves', async (t) => {
  const exported = await until('all can be exported', async () => {
    const query = `question_id=${id}`;
    const { bytes } = await fetchBytes(`${app.url}/api/export/consensus-history?${query}`);
    const rows = readLines(bytes.toString());
    return rows.length === stated.length && rows;
  });
  const figures = { options, option_forecasts: forecasts, option_probabilities: means };
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
  t.match(day.resolved.questions, [
    { question_id: id, outcome: 'Google', crowd: headline.forecast },
  ]);
  const brief = await get(`/api/questions/${id}/intel-brief`);
  t.match(brief.headline.at(-1), `Combined, the predictions gave it ${percent}.`);
  t.match(
    textOf(await get(`/embed/${id}`)),
    `Google The crowd was right. Last forecast: ${google} for Google`,
  );
});
