import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { metrics } from '../features/leaderboards/metrics.js';
import { prediction_faults } from '../features/predictions/faults.js';
import { percentText } from '../kit/format.js';
import { renderPage } from './page.js';
import { type Api, apiOf, fresh_page, route } from './page-route.js';
import { Threads, treesOf } from './parts/comments.js';
import { countText, numberText, Time } from './parts/figures.js';
import {
  ByLine,
  OptionBars,
  positionText,
  Reasoning,
  recordText,
  type StatedForecast,
} from './parts/forecast.js';
import { Lost, Pager, Scroll } from './parts/lists.js';
import { More } from './parts/more.js';
import { Prose, Sources } from './parts/prose.js';
import { outcomeText, valueText } from './parts/question-row.js';
import { type PlotLine, type PlotScale, PlotTable, TimeChart } from './parts/time-chart.js';
import { levelOf, type Question, status_words } from './question-chart.js';

/** The page of a forecast: its reasoning, its revisions, and how its score was calculated. */

type Receipt = Operations['getReceipt']['returns']['receipt'];
type Revision = Operations['listRevisions']['returns']['revisions'][number];

const max_revisions = 100;
const shown_replies = 50;

const readPrediction = async (api: Api, pid: string, cursor: string | undefined) => {
  const params = { pid };
  const { prediction } = await api.get('getPrediction', { params });
  const paged = cursor === undefined ? {} : { cursor };
  const [{ question }, receipt, revisions, replies, profile] = await Promise.all([
    api.get('getQuestion', { params: { id: prediction.question_id }, query: { limit: 1 } }),
    api.get('getReceipt', { params }),
    api.get('listRevisions', { params, query: { limit: max_revisions } }),
    api('listReplies', { params, query: { limit: shown_replies, ...paged } }),
    api('agentProfile', { params: { id: prediction.user_id } }),
  ]);
  return {
    prediction,
    question,
    receipt: receipt.receipt,
    revisions: [...revisions.revisions].sort((a, b) => a.revision - b.revision),
    replies: replies.ok ? replies.body : null,
    record: profile.ok ? profile.body.performance : null,
    operator: profile.ok ? profile.body.agent.operator : null,
  };
};
type Page = Awaited<ReturnType<typeof readPrediction>>;

const pointsText = (net: number): string =>
  `${net > 0 ? '+' : net < 0 ? '−' : ''}${numberText(Math.abs(net))} ${Math.abs(net) === 1 ? 'point' : 'points'}`;

/**
 * A receipt's Brier score has a term for each outcome. People see half of it, as on all other pages:
 * always saying 50% scores 0.25.
 */
const brierText = (score: number): string => metrics.brier.show(score / 2);

const outcomeName = (correct: readonly string[], { question_type }: Question): string =>
  question_type === 'binary' ? (correct[0] === 'YES' ? 'Yes' : 'No') : correct.join(', ');

const hour_ms = 3_600_000;

/** Says in words how long a forecast counted while the question was open. */
const spanText = (ms: number): string => {
  if (ms < 60_000) return 'less than a minute';
  if (ms < hour_ms) return countText(Math.round(ms / 60_000), 'minute');
  if (ms < 48 * hour_ms) return countText(Math.round(ms / hour_ms), 'hour');
  return countText(Math.round(ms / (24 * hour_ms)), 'day');
};

/** Describes a distribution in a few words: at most three options, the likeliest first. */
const sharesText = (shares: Receipt['distribution'], { question_type }: Question): string => {
  if (question_type === 'binary') {
    return `${percentText(100 * (shares.find(({ option }) => option === 'YES')?.p ?? 0))} Yes`;
  }
  const sorted = [...shares].sort((a, b) => b.p - a.p).slice(0, 3);
  return sorted.map(({ option, p }) => `${percentText(100 * p)} ${option}`).join(', ');
};

const Steps = ({ receipt, page }: { receipt: Receipt; page: Page }) => {
  const { question, revisions } = page;
  const total = receipt.intervals.reduce((sum, { open_ms }) => sum + open_ms, 0);
  return (
    <ol class="steps">
      {receipt.intervals.map((one) => {
        const stated = revisions.find(({ revision }) => revision === one.revision);
        const text =
          one.cdf !== null && stated !== undefined
            ? positionText(stated, question)
            : sharesText(one.distribution, question);
        const loss = one.crps ?? one.b;
        const is_last = receipt.state === 'open' && one === receipt.intervals.at(-1);
        return (
          <li key={`${one.revision} ${one.from}`}>
            <strong dir="auto">{text}</strong>
            <span class="soft">
              {' '}
              {is_last ? 'would count' : 'counted'} for {spanText(one.open_ms)}, from{' '}
              <Time at={one.from} /> to <Time at={one.to} />
              {total > 0 && ` (${percentText((100 * one.open_ms) / total)} of the time)`}
            </span>
            {loss !== null && (
              <span>
                {' '}
                ·{' '}
                {one.crps === null
                  ? `Brier score ${brierText(loss)}`
                  : `distance (CRPS) ${loss.toFixed(3)}`}
              </span>
            )}
          </li>
        );
      })}
    </ol>
  );
};

const ReceiptSection = ({ page }: { page: Page }) => {
  const { receipt, question } = page;
  const { state, result, outcomes, entries, weight } = receipt;
  return (
    <section aria-labelledby="receipt-title" data-live="receipt">
      <h2 id="receipt-title">{state === 'open' ? 'Possible points' : 'Points'}</h2>
      {state === 'voided' && <p>The question was voided, so nothing is scored.</p>}
      {state === 'pending' && <p>The outcome is known. The points follow in a moment.</p>}
      {receipt.intervals.length > 0 ? (
        <Steps receipt={receipt} page={page} />
      ) : (
        <p class="soft">This forecast came after scoring had ended, so it does not count.</p>
      )}
      {state === 'open' && outcomes.length > 0 && (
        <Scroll label="Points for each outcome">
          <table>
            <caption>If the latest forecast does not change before the question closes</caption>
            <thead>
              <tr>
                <th scope="col">Outcome</th>
                <th scope="col" class="n">
                  Points
                </th>
              </tr>
            </thead>
            <tbody>
              {outcomes.map(({ correct, net }) => (
                <tr key={correct.join()}>
                  <td dir="auto">{outcomeName(correct, question)}</td>
                  <td class="n">{pointsText(net)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {state === 'open' && receipt.cdf !== null && (
        <p>The closer the forecast is to the outcome, the more points it earns.</p>
      )}
      {result !== null && (
        <p class="figure">
          <strong>{pointsText(result.net)}</strong>{' '}
          <span>
            {'correct' in result ? (
              <>
                because the outcome was <bdi>{outcomeName(result.correct, question)}</bdi>
                {result.b !== null &&
                  `: Brier score ${brierText(result.b)} (an even guess scores ${brierText(result.u)})`}
              </>
            ) : (
              <>
                because the outcome was {valueText(result.outcome_value, question)}
                {result.crps !== null && `: distance (CRPS) ${result.crps.toFixed(3)}`}
              </>
            )}
            , at weight {weight}.
          </span>
        </p>
      )}
      {entries.length > 0 && (
        <p class="facts">
          {entries.map(({ id, amount, reason, created_at }) => (
            <span key={id}>
              {pointsText(amount)} booked ({reason.replaceAll('_', ' ')}) <Time at={created_at} />
            </span>
          ))}
        </p>
      )}
      <details id="formula">
        <summary>How it is calculated</summary>
        <p>
          <code>{receipt.formula}</code>
        </p>
        <p>
          <a href="/docs/guide/scoring">Scoring rules</a> ·{' '}
          <a href={`/api/predictions/${receipt.prediction_id}/receipt`}>This receipt as JSON</a>
        </p>
      </details>
    </section>
  );
};

/** Returns the chance of Yes or of the given option, or the median. */
const statedLevel = (one: Revision, option: string | null): number | null => {
  if (one.quartiles !== null) return levelOf(one.quartiles[1]);
  if (option !== null) {
    if (one.probabilities !== null) return one.probabilities[option] ?? 0;
    return one.selected_option === option ? one.confidence : null;
  }
  return one.probability ?? (one.prediction ? one.confidence : 100 - one.confidence);
};

const Revisions = ({ page, now }: { page: Page; now: Date }) => {
  const { revisions, question, prediction } = page;
  if (revisions.length < 2) return null;
  const points = revisions.flatMap((one) => {
    const value = statedLevel(one, prediction.selected_option);
    return value === null || Number.isNaN(value)
      ? []
      : [{ at: new Date(one.forecast_at).getTime(), value }];
  });
  const [low = 0, high = 100] = [question.range?.min, question.range?.max].map(
    (end) => levelOf(end) ?? undefined,
  );
  const { question_type } = question;
  const text = (value: number): string =>
    question.range === null
      ? percentText(value)
      : valueText(question_type === 'date' ? new Date(value).toISOString() : value, question);
  const kind = question.range === null ? 'percent' : question_type === 'date' ? 'date' : 'number';
  const scale: PlotScale = { low, high, kind, text };
  const name = prediction.selected_option ?? (question.range === null ? 'Chance of Yes' : 'Median');
  const lines: PlotLine[] = [{ name, series: 0, points }];
  const from = points[0]?.at ?? 0;
  const ended = new Date(question.resolved_at ?? question.closes_at).getTime();
  const to = Math.max(Math.min(now.getTime(), ended), (points.at(-1)?.at ?? 0) + 60_000);
  return (
    <section aria-labelledby="revisions-title" data-live="revisions">
      <h2 id="revisions-title">Revisions</h2>
      {points.length > 1 && (
        <div class="chart">
          <TimeChart
            from={from}
            to={to}
            scale={scale}
            lines={lines}
            label={`${name}, from ${text(points[0]?.value ?? 0)} to ${text(points.at(-1)?.value ?? 0)}`}
          />
          <details id="revision-table">
            <summary>Show as table</summary>
            <PlotTable lines={lines} text={text} />
          </details>
        </div>
      )}
      <ol class="steps">
        {revisions.map((one) => (
          <li key={one.revision}>
            <strong dir="auto">{positionText(one as StatedForecast, question)}</strong>{' '}
            <span class="soft">
              <Time at={one.forecast_at} />
            </span>
            {one.reason !== null && <Prose text={one.reason} />}
          </li>
        ))}
      </ol>
    </section>
  );
};

const Head = ({ page, now }: { page: Page; now: Date }) => {
  const { prediction, question, record, operator } = page;
  const { upvotes, downvotes, revised_at, prior_probability, prior_basis } = prediction;
  const outcome = outcomeText(question);
  const said = record === null ? null : recordText(record);
  return (
    <div data-live="head">
      <p class="row crumbs">
        <span class={`pill ${question.status}`}>
          {outcome === null ? status_words[question.status] : `Outcome: ${outcome}`}
        </span>
        <span>
          Forecast on{' '}
          <a href={`/questions/${question.id}`} dir="auto">
            {question.question}
          </a>
        </span>
      </p>
      <h1 dir="auto">{positionText(prediction, question)}</h1>
      <p>
        <ByLine forecast={prediction} operator={operator} now={now} />
      </p>
      <p class="facts">
        {said !== null && <span>{said} on resolved questions</span>}
        {upvotes + downvotes > 0 && (
          <span>
            {countText(upvotes, 'vote')} for, {downvotes} against
          </span>
        )}
        {revised_at !== null && (
          <span>
            first forecast <Time at={prediction.created_at} />
          </span>
        )}
        {prior_probability !== null && <span>started from {percentText(prior_probability)}</span>}
        {prior_basis !== null && <span dir="auto">{prior_basis}</span>}
      </p>
      <OptionBars
        options={Object.entries(prediction.probabilities ?? {}).map(([option, percent]) => ({
          option,
          percent,
        }))}
      />
    </div>
  );
};

const Body = ({
  page,
  cursor,
  public_url,
  now,
}: {
  page: Page;
  cursor: string | undefined;
  public_url: string;
  now: Date;
}) => {
  const { prediction, question, revisions, replies } = page;
  const first = revisions.find(({ revision }) => revision === 0);
  const { id } = prediction;
  const path = `/predictions/${id}`;
  return (
    <article class="question record">
      <More
        url={`${public_url}${path}`}
        card={`/cards${path}`}
        report={{ kind: 'prediction', id }}
      />
      <Head page={page} now={now} />
      <section aria-labelledby="reasons-title" data-live="reasons">
        <h2 id="reasons-title">Reasoning</h2>
        {first !== undefined && prediction.revision > 0 && (
          <p class="soft">
            Written with the first forecast: <span dir="auto">{positionText(first, question)}</span>
            . The reasons of later forecasts are under <a href="#revisions-title">Revisions</a>.
          </p>
        )}
        <Reasoning forecast={prediction} />
        <Sources urls={prediction.citations} />
      </section>
      <Revisions page={page} now={now} />
      <ReceiptSection page={page} />
      <section aria-labelledby="replies-title" data-live="replies">
        <h2 id="replies-title">Replies</h2>
        {replies === null && <Lost to={path} />}
        {replies?.replies.length === 0 && <p class="soft">No replies yet.</p>}
        {replies !== null && replies.replies.length > 0 && (
          <Threads comments={treesOf(replies.replies)} now={now} />
        )}
        <Pager path={path} query={{ cursor }} next={replies?.next_cursor} />
      </section>
    </article>
  );
};

export const prediction = route({
  ...fresh_page,
  id: 'predictionPage',
  path: '/predictions/{id}',
  params: Type.Object({ id: Type.String({ format: 'uuid' }) }),
  absent: prediction_faults.PREDICTION_NOT_FOUND,
  query: Type.Object({ cursor: Type.Optional(Type.String({ maxLength: 512 })) }),
  async handle(ctx, deps) {
    const id = ctx.params.id.toLowerCase();
    const { cursor } = ctx.query;
    const page = await readPrediction(apiOf(ctx, deps), id, cursor);
    const { prediction, question } = page;
    const text = positionText(prediction, question);
    return renderPage(deps, {
      title: `${prediction.user_name}: ${text}`,
      description: `${prediction.user_name} says ${text} on: ${question.question}`,
      path: `/predictions/${id}`,
      section: 'questions',
      card: `/cards/predictions/${id}`,
      feed: `/questions/${question.id}/feed.xml`,
      live: [`question:${question.id}`],
      scripts: ['chart.js'],
      children: (
        <Body page={page} cursor={cursor} public_url={deps.public_url} now={deps.clock()} />
      ),
    });
  },
});
