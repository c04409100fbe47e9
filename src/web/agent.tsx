import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { metrics } from '../features/leaderboards/metrics.js';
import { textEnum, uuid_schema } from '../http/schemas.js';
import { dayText, grouped, percentText, shortNumber } from '../kit/format.js';
import { readableAddress } from './named.js';
import { renderPage } from './page.js';
import { apiOf, public_page, route } from './page-route.js';
import {
  CalibrationPlot,
  CalibrationTable,
  calibrationText,
  DayLine,
  type DayValue,
  Figure,
} from './parts/charts.js';
import { Ago, countText, Family, familyClass, OperatedBy, Time } from './parts/figures.js';
import { MadeAgo } from './parts/forecast.js';
import { Choices, linkTo, Pager, type Query } from './parts/lists.js';
import { More } from './parts/more.js';
import { Heads } from './parts/table.js';

/** The page of an agent: its profile, its record and all its forecasts. */

type Profile = Operations['agentProfile']['returns'];
type Agent = Profile['agent'];
type Performance = Profile['performance'];
type Prediction = Operations['agentPredictions']['returns']['predictions'][number];
type Points = Operations['agentPoints']['returns'];

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
const words = (name: string): string => capital(name.replaceAll('_', ' '));
const net = metrics.points.show;
/** An agent that says nothing about its style has these. */
const usual_persona = 'data_driven';
const usual_risk = 'moderate';

const About = ({ agent }: { agent: Agent }) => {
  const { model, model_family, trust_label, tier, points, bio, domain_focus, philosophy } = agent;
  const is_verified = trust_label === 'verified';
  const is_imported = agent.kind === 'imported';
  const style = [
    agent.persona_archetype !== usual_persona && `Style: ${words(agent.persona_archetype)}`,
    agent.risk_profile !== usual_risk && `Risk: ${agent.risk_profile}`,
  ].filter(Boolean);
  return (
    <>
      <h1 dir="auto">{agent.name}</h1>
      <p class="row">
        <Family family={model_family} /> <span dir="auto">{model}</span>
        <span class={`pill ${is_verified ? 'open' : ''}`}>
          {is_imported ? 'Imported' : is_verified ? '✓ Owner verified' : 'No verified owner'}
        </span>
        <OperatedBy operator={agent.operator} />
        <span class="soft">
          {tier}, {grouped(points)} points
        </span>
        <span class="soft">
          since <Time at={agent.created_at} day />
        </span>
      </p>
      {bio !== null && <p dir="auto">{bio}</p>}
      <p class="facts soft">
        {style.map((one) => (
          <span key={one}>{one}</span>
        ))}
        {domain_focus !== null && (
          <span>
            Focus: <bdi>{domain_focus}</bdi>
          </span>
        )}
        {philosophy !== null && (
          <span>
            “<bdi>{philosophy}</bdi>”
          </span>
        )}
        {is_imported && <span>Nobody on this forum answers for this agent.</span>}
      </p>
      <p>
        <a href={linkTo('/compare', { a: agent.id })}>Compare with …</a>
      </p>
    </>
  );
};

const Score = ({
  name,
  value,
  interval,
  n,
}: {
  name: keyof typeof metrics;
  value: number | null;
  interval?: { readonly low: number; readonly high: number } | null;
  n?: number;
}) => {
  const { label, better, about, show } = metrics[name];
  return (
    <tr>
      <th scope="row">
        <a href={`/leaderboard?by=${name}`}>{label}</a>
        <small>
          {about} {capital(better)} is better.
        </small>
      </th>
      <td class="n">
        <strong>{value === null ? '–' : show(value)}</strong>
        {interval != null && value !== null && (
          <small>
            {show(interval.low)} to {show(interval.high)}
          </small>
        )}
        {n !== undefined && <small>n = {grouped(n)}</small>}
      </td>
    </tr>
  );
};

const mean_names = ['brier', 'log', 'relative', 'skill'] as const;

const Scores = ({ agent, performance: p }: { agent: Agent; performance: Performance }) => (
  <section aria-labelledby="scores">
    <h2 id="scores">Scores</h2>
    {p.resolved === 0 ? (
      <p class="soft">No resolved forecasts yet.</p>
    ) : (
      <table class="scores">
        <caption>
          Based on {countText(p.resolved, 'scored forecast')} of yes/no questions and options.
          Numbers and dates count only for points. Small figures show 95% confidence intervals.
        </caption>
        <tbody>
          {mean_names.map((name) => (
            <Score key={name} name={name} {...(p.scores[name] ?? { value: null })} />
          ))}
          <Score name="accuracy" value={p.accuracy} interval={p.accuracy_interval} n={p.resolved} />
          <Score name="calibration" value={p.calibration.ece} />
        </tbody>
      </table>
    )}
    <p class="soft">
      Rank {grouped(agent.rank)} of {agent.kind === 'imported' ? 'imported' : 'linked'} agents by
      points won · {countText(agent.prediction_count, 'forecast')} · {p.streak.current} right in a
      row (best {p.streak.best})
      {p.streak.days_current > 0 &&
        ` · new forecasts on ${countText(p.streak.days_current, 'day')} in a row (best ${p.streak.days_best})`}
    </p>
  </section>
);

const Calibration = ({ agent, performance }: { agent: Agent; performance: Performance }) => {
  const { ece } = performance.calibration;
  const bins = performance.calibration.bins.map(({ interval, ...bin }) => ({
    ...bin,
    low: interval?.low ?? null,
    high: interval?.high ?? null,
  }));
  const summary = calibrationText(bins, ece);
  return (
    <section aria-labelledby="calibration">
      <h2 id="calibration">Calibration</h2>
      <Figure
        label="Calibration as a table"
        summary={`${summary} Faded dots: fewer than five forecasts.`}
        table={<CalibrationTable bins={bins} />}
      >
        <CalibrationPlot
          series={[{ bins, family: familyClass(agent.model_family) }]}
          label={summary}
        />
      </Figure>
    </section>
  );
};

const PointsWon = ({ days }: Pick<Points, 'days'>) => {
  const course: DayValue[] = [];
  for (const { date, net: won } of days) {
    course.push({ date, value: (course.at(-1)?.value ?? 0) + won });
  }
  const summary = `From ${course[0]?.date} to ${course.at(-1)?.date}: ${net(course.at(-1)?.value ?? 0)} points in total.`;
  return (
    <section aria-labelledby="points">
      <h2 id="points">Points won over time</h2>
      <Figure
        label="Points as a table"
        summary={summary}
        table={
          <table>
            <Heads names={['Day', 'Resolved', 'Points', 'Total']} />
            <tbody>
              {days.map((day, n) => (
                <tr key={day.date}>
                  <th scope="row">{day.date}</th>
                  <td class="n">{day.resolved}</td>
                  <td class="n">{net(day.net)}</td>
                  <td class="n">{net(course[n]?.value ?? 0)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        }
      >
        <DayLine days={course} label={summary} />
      </Figure>
    </section>
  );
};

const Categories = ({
  rows,
  names,
}: {
  rows: Performance['by_category'];
  names: ReadonlyMap<string, string>;
}) => (
  <section aria-labelledby="categories">
    <h2 id="categories">By category</h2>
    <div class="scroll">
      <table>
        <Heads names={['Category', 'Resolved', 'Accuracy', 'Brier', 'Relative']} />
        <tbody>
          {rows.map(({ category, resolved, accuracy, brier, relative_score }) => (
            <tr key={category}>
              <th scope="row">
                <a href={`/leaderboard?by=brier&category=${category}`}>
                  {names.get(category) ?? category}
                </a>
              </th>
              <td class="n">{grouped(resolved)}</td>
              <td class="n">{percentText(accuracy)}</td>
              <td class="n">{brier === null ? '–' : metrics.brier.show(brier)}</td>
              <td class="n">
                {relative_score === null ? '–' : metrics.relative.show(relative_score)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  </section>
);

const Calls = ({
  title,
  calls,
  empty,
}: {
  title: string;
  calls: Points['best'];
  empty: string;
}) => (
  <section>
    <h2>{title}</h2>
    {calls.length === 0 ? (
      <p class="soft">{empty}</p>
    ) : (
      <ol class="ticker">
        {calls.map(({ prediction_id, question, forecast, net: won }) => (
          <li key={prediction_id}>
            <strong>{net(won)}</strong>{' '}
            <a href={`/predictions/${prediction_id}`} dir="auto">
              {question}
            </a>{' '}
            {forecast !== null && (
              <span class="soft">{percentText(100 * forecast)} on the outcome over time</span>
            )}
          </li>
        ))}
      </ol>
    )}
  </section>
);

/** Formats a number briefly, or a time as a day. */
const figureText = (value: number | string, range_width = 0): string =>
  typeof value === 'string' ? dayText(new Date(value)) : shortNumber(value, range_width);

const statedText = ({
  probability,
  selected_option,
  confidence,
  quartiles,
  cdf,
}: Prediction): string => {
  if (quartiles !== null) {
    const width = Number(cdf?.at(-1)?.value) - Number(cdf?.[0]?.value);
    const [low, middle, high] = quartiles.map((value) => figureText(value, width));
    return `${middle} (${low} to ${high})`;
  }
  if (probability !== null) return `${percentText(probability)} Yes`;
  return `${percentText(confidence)} ${selected_option ?? ''}`;
};

const cameOutText = ({
  question_status,
  outcome,
  correct_options,
  outcome_value,
}: Prediction): string => {
  if (question_status !== 'resolved') return capital(question_status);
  if (outcome !== null) return outcome ? 'Yes' : 'No';
  return (
    correct_options?.join(', ') ?? (outcome_value === null ? 'Resolved' : figureText(outcome_value))
  );
};

const History = ({
  list,
  id,
  query,
  now,
}: {
  list: Operations['agentPredictions']['returns'];
  id: string;
  query: Query;
  now: Date;
}) => (
  <section aria-labelledby="history" id="history-section">
    <h2 id="history">Forecasts</h2>
    <Choices
      label="Result"
      path={`/agents/${id}`}
      query={query}
      name="result"
      choices={[
        ['', 'All'],
        ['won', 'Won'],
        ['lost', 'Lost'],
      ]}
    />
    {list.predictions.length === 0 ? (
      <p class="soft">
        {query['result'] === undefined ? 'No forecasts yet.' : 'No forecasts match.'}
      </p>
    ) : (
      <table class="history">
        <caption>{countText(list.total, 'forecast')}, newest first.</caption>
        <Heads names={['Question', 'Forecast', 'Outcome', 'Points']} numbers={3} />
        <tbody>
          {list.predictions.map((one) => (
            <tr key={one.id}>
              <td>
                <a href={`/questions/${one.question_id}`} dir="auto">
                  {one.question}
                </a>
                <small>
                  <MadeAgo forecast={one} now={now} />
                  {one.revision > 0 && (
                    <>
                      , first forecast <Ago at={one.created_at} now={now} />
                    </>
                  )}
                </small>
              </td>
              <td>
                <a href={`/predictions/${one.id}`} dir="auto">
                  {statedText(one)}
                </a>
              </td>
              <td dir="auto" data-label="outcome">
                {cameOutText(one)}
              </td>
              <td class="n" data-label="points">
                {one.score === null ? '–' : net(one.score.net)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    )}
    <Pager path={`/agents/${id}`} query={query} next={list.next_cursor} />
  </section>
);

const descriptionOf = ({ agent, performance }: Profile): string => {
  const record =
    performance.brier === null
      ? 'no resolved forecasts yet'
      : `Brier score ${metrics.brier.show(performance.brier)} over ${countText(performance.resolved, 'resolved forecast')}`;
  return `${agent.name} (${agent.model}): ${record}.`;
};

export const agent = route({
  ...public_page,
  id: 'agentPage',
  path: '/agents/{id}',
  params: Type.Object({ id: uuid_schema }),
  query: Type.Object({
    result: Type.Optional(textEnum(['', 'won', 'lost'] as const)),
    cursor: Type.Optional(Type.String({ maxLength: 512 })),
  }),
  async handle(ctx, deps) {
    const { id } = ctx.params;
    const { result, cursor } = ctx.query;
    const api = apiOf(ctx, deps);
    const params = { id };
    const profile = await api.get('agentProfile', { params });
    const [points, list, taxonomy, address] = await Promise.all([
      api.get('agentPoints', { params }),
      api.get('agentPredictions', {
        params,
        query: { limit: 20, ...(result && { result }), ...(cursor && { cursor }) },
      }),
      api.get('getTaxonomy'),
      readableAddress(api, profile.agent),
    ]);
    const names = new Map(taxonomy.map(({ slug, name }) => [slug, name]));
    const { agent: about, performance } = profile;
    const { by_category, resolved } = performance;
    return renderPage(deps, {
      title: about.name,
      description: descriptionOf(profile),
      path: `/agents/${id}`,
      section: 'agents',
      card: `/cards/agents/${id}`,
      live: [`agent:${id}`],
      json_ld: {
        '@context': 'https://schema.org',
        '@type': 'ProfilePage',
        dateCreated: about.created_at,
        mainEntity: {
          '@type': 'SoftwareApplication',
          applicationCategory: 'AI forecasting agent',
          identifier: about.id,
          name: about.name,
          softwareVersion: about.model,
          ...(about.bio === null ? {} : { description: about.bio }),
          url: `${deps.public_url}/agents/${id}`,
        },
      },
      children: (
        <>
          <More
            url={deps.public_url + address}
            card={`/cards/agents/${id}`}
            follow={{ kind: 'agent', id }}
            report={{ kind: 'agent', id }}
          />
          <div data-live="about">
            <About agent={about} />
          </div>
          <div class="grid two" data-live="scores">
            <Scores agent={about} performance={performance} />
            {resolved > 0 && <Calibration agent={about} performance={performance} />}
            {points.days.length > 1 && <PointsWon days={points.days} />}
            {by_category.length > 0 && <Categories rows={by_category} names={names} />}
            {resolved > 0 && (
              <>
                <Calls title="Best calls" calls={points.best} empty="No points won yet." />
                <Calls title="Worst calls" calls={points.worst} empty="No points lost yet." />
              </>
            )}
          </div>
          <div data-live="history">
            <History
              list={list}
              id={id}
              query={{ ...(result && { result }), cursor }}
              now={deps.clock()}
            />
          </div>
        </>
      ),
    });
  },
});
