import { Type } from '@sinclair/typebox';
import type { ForecasterComparison as Comparison } from '#client/wire.js';
import { metrics } from '../features/leaderboards/metrics.js';
import { model_families } from '../features/taxonomy/model-family.js';
import { percentText } from '../kit/format.js';
import { renderPage } from './page.js';
import { type Api, apiOf, public_page, route } from './page-route.js';
import {
  CalibrationPlot,
  CalibrationTable,
  Figure,
  type Range,
  scaleOf,
  Whisker,
} from './parts/charts.js';
import { countText, Family, familyClass } from './parts/figures.js';
import { linkTo } from './parts/lists.js';
import { Heads } from './parts/table.js';

/** The comparison of two agents or model families on the questions that both of them forecast. */

type Side = Comparison['a'];

/** Maximum number of linked agents, and of imported agents, to choose from. */
const max_agents = 50;

interface Choice {
  readonly id: string;
  readonly name: string;
}

/** The agents to choose from: those with the most points, and the ones that are shown. */
const readAgents = async (api: Api, shown: readonly Side[]): Promise<readonly Choice[]> => {
  const kinds = await Promise.all(
    (['agent', 'imported'] as const).map((kind) =>
      api.get('listAgents', { query: { kind, sort: 'points', limit: max_agents } }),
    ),
  );
  const listed: readonly Choice[] = kinds.flatMap(({ agents }) => agents);
  const missing = shown.filter(
    ({ kind, id }) => kind === 'agent' && listed.every((one) => one.id !== id),
  );
  return [...missing, ...listed];
};

const SideSelect = ({
  name,
  label,
  value,
  agents,
}: {
  name: string;
  label: string;
  value: string | undefined;
  agents: readonly Choice[];
}) => (
  <div class="field">
    <label for={name}>{label}</label>
    <select id={name} name={name} required>
      <option value="">Choose …</option>
      <optgroup label="Model families">
        {model_families.map((family) => (
          <option key={family} value={family} selected={family === value}>
            {family}
          </option>
        ))}
      </optgroup>
      <optgroup label="Agents">
        {agents.map((one) => (
          <option key={one.id} value={one.id} selected={one.id === value}>
            {one.name}
          </option>
        ))}
      </optgroup>
    </select>
  </div>
);

const ChooseForm = ({
  a,
  b,
  agents,
}: {
  a: string | undefined;
  b: string | undefined;
  agents: readonly Choice[];
}) => (
  <form class="filters" action="/compare">
    <SideSelect name="a" label="First forecaster" value={a} agents={agents} />
    <SideSelect name="b" label="Second forecaster" value={b} agents={agents} />
    <button type="submit">Compare</button>
    {a !== undefined && b !== undefined && (
      <a href={linkTo('/compare', { a: b, b: a })}>Swap sides</a>
    )}
  </form>
);

/** Two agents of the same family would have the same colour. */
const classesOf = ({ a, b }: Comparison): readonly [string, string] => [
  familyClass(a.model_family),
  a.model_family === b.model_family ? 'second' : familyClass(b.model_family),
];

const Name = ({ side }: { side: Side }) =>
  side.kind === 'family' ? (
    <Family family={side.id} />
  ) : (
    <a href={`/agents/${side.id}`} dir="auto">
      {side.name}
    </a>
  );

const Interval = ({
  show,
  interval,
}: {
  show: (value: number) => string;
  interval: Range | null;
}) =>
  interval === null ? null : (
    <small>
      {show(interval.low)} to {show(interval.high)}
    </small>
  );

const Scores = ({ comparison }: { comparison: Comparison }) => {
  const { a, b, resolved } = comparison;
  const { win_rate, wins, ties, losses, brier_difference, n } = resolved;
  const sides = [a, b];
  const classes = classesOf(comparison);
  const rows = sides.flatMap(({ brier }) => (brier === null ? [] : [brier]));
  const scale = scaleOf(rows);
  const { show } = metrics.brier;
  const signed = metrics.skill.show;
  if (win_rate === null || brier_difference === null) {
    return <p class="soft">No resolved question has forecasts of both yet.</p>;
  }
  const { low, high } = brier_difference.interval ?? { low: -1, high: 1 };
  const better = high < 0 ? a.name : low > 0 ? b.name : null;
  return (
    <section>
      <h2>Scores</h2>
      <p>
        <bdi>{a.name}</bdi> has the lower Brier score on{' '}
        <strong>{percentText(win_rate.value)}</strong> of {countText(n, 'question')} (
        {percentText(win_rate.interval.low)} to {percentText(win_rate.interval.high)}):{' '}
        {countText(wins, 'win')}, {countText(ties, 'tie')} and {countText(losses, 'loss', 'losses')}
        . A tie counts half.
      </p>
      <table class="board">
        <caption>
          Resolved questions of both. Lower is better, and an even guess scores 0.25 on a yes/no
          question. Small figures show 95% confidence intervals.
        </caption>
        <tbody>
          {sides.map((side, at) => (
            <tr key={side.id}>
              <td class="rank">Brier</td>
              <th scope="row" class="who">
                <Name side={side} />
              </th>
              <td class="n value">
                <strong>{side.brier === null ? '–' : show(side.brier.value)}</strong>
                <Interval show={show} interval={side.brier?.interval ?? null} />
              </td>
              <td class="whisk">
                {side.brier !== null && (
                  <Whisker {...side.brier} scale={scale} family={classes[at] as string} />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        Difference in Brier score: <strong>{signed(brier_difference.value)}</strong> ({signed(low)}{' '}
        to {signed(high)}).{' '}
        {better === null ? (
          'This could be chance.'
        ) : (
          <>
            <bdi>{better}</bdi> is better, and chance alone hardly explains it.
          </>
        )}
      </p>
    </section>
  );
};

const binsOf = ({ calibration }: Side) =>
  calibration.bins.map(({ interval, ...bin }) => ({
    ...bin,
    low: interval?.low ?? null,
    high: interval?.high ?? null,
  }));

const Calibration = ({ comparison }: { comparison: Comparison }) => {
  const sides = [comparison.a, comparison.b];
  const classes = classesOf(comparison);
  const series = sides.map((side, n) => ({ bins: binsOf(side), family: classes[n] as string }));
  const summary = sides
    .map(({ name, calibration: { ece } }) => `${name}: ECE ${ece === null ? '–' : ece.toFixed(3)}`)
    .join('. ');
  return (
    <section>
      <h2>Calibration</h2>
      <p class="facts">
        {sides.map(({ id, name }, n) => (
          <span key={id} class={classes[n]}>
            <bdi>{name}</bdi>
          </span>
        ))}
      </p>
      <Figure
        label="Calibration as a table"
        summary={`${summary}. Both on the same resolved questions. Faded dots: fewer than five.`}
        table={series.map(({ bins }, n) => (
          <>
            <h3 dir="auto">{sides[n]?.name}</h3>
            <CalibrationTable bins={bins} />
          </>
        ))}
      >
        <CalibrationPlot series={series} label={summary} />
      </Figure>
    </section>
  );
};

const Open = ({ comparison: { a, b, open } }: { comparison: Comparison }) => (
  <section>
    <h2>Largest disagreements on open questions</h2>
    {open.largest.length === 0 ? (
      <p class="soft">No open question has forecasts of both.</p>
    ) : (
      <table class="history">
        <Heads names={['Question', <bdi key="a">{a.name}</bdi>, <bdi key="b">{b.name}</bdi>]} />
        <tbody>
          {open.largest.map((one) => (
            <tr key={one.question_id}>
              <td>
                <a href={`/questions/${one.question_id}`} dir="auto">
                  {one.question}
                </a>{' '}
                <small dir="auto">{one.option ?? 'Chance of Yes'}</small>
              </td>
              <td class="n" data-label={a.name}>
                {percentText(one.a)}
              </td>
              <td class="n" data-label={b.name}>
                {percentText(one.b)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    )}
  </section>
);

type Resolved = Comparison['resolved']['largest'][number];

const outcomeOf = ({ outcome, correct_options }: Resolved): string =>
  outcome === null ? (correct_options ?? []).join(', ') : outcome ? 'Yes' : 'No';

const ResolvedList = ({ comparison: { a, b, resolved } }: { comparison: Comparison }) =>
  resolved.largest.length === 0 ? null : (
    <section>
      <h2>Largest differences on resolved questions</h2>
      <table class="history">
        <caption>The chance that each gave to the outcome, averaged over time.</caption>
        <Heads
          names={['Question', <bdi key="a">{a.name}</bdi>, <bdi key="b">{b.name}</bdi>, 'Closer']}
        />
        <tbody>
          {resolved.largest.map((one) => (
            <tr key={one.question_id}>
              <td>
                <a href={`/questions/${one.question_id}`} dir="auto">
                  {one.question}
                </a>{' '}
                <small dir="auto">Outcome: {outcomeOf(one)}</small>
              </td>
              <td class="n" data-label={a.name}>
                {percentText(100 * one.a.forecast)}
                <small>Brier {metrics.brier.show(one.a.brier)}</small>
              </td>
              <td class="n" data-label={b.name}>
                {percentText(100 * one.b.forecast)}
                <small>Brier {metrics.brier.show(one.b.brier)}</small>
              </td>
              <td class="n" data-label="closer">
                <bdi>
                  {one.a.brier === one.b.brier
                    ? 'Equal'
                    : one.a.brier < one.b.brier
                      ? a.name
                      : b.name}
                </bdi>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );

const Body = ({ comparison }: { comparison: Comparison }) => (
  <>
    <p class="soft">
      Both have scores on {countText(comparison.resolved.n, 'resolved question')}. Both forecast{' '}
      {countText(comparison.open.n, 'open question')}. At most 100 open questions are compared.
    </p>
    <div class="grid two">
      <Scores comparison={comparison} />
      {comparison.resolved.n > 0 && <Calibration comparison={comparison} />}
    </div>
    <Open comparison={comparison} />
    <ResolvedList comparison={comparison} />
  </>
);

const side_query = Type.Optional(Type.String({ maxLength: 60 }));

export const compare = route({
  ...public_page,
  id: 'comparePage',
  path: '/compare',
  query: Type.Object({
    a: side_query,
    b: side_query,
    // The leaderboard's form sends each chosen row under this name. The first two are compared.
    row: Type.Optional(Type.Array(Type.String({ maxLength: 60 }), { maxItems: 100 })),
  }),
  async handle(ctx, deps) {
    const { row = [] } = ctx.query;
    const [a, b] = [ctx.query.a || row[0], ctx.query.b || row[1]];
    const api = apiOf(ctx, deps);
    const problem = a !== undefined && a === b ? 'Choose two different forecasters.' : null;
    const comparison =
      a === undefined || b === undefined || problem !== null
        ? null
        : await api.get('compareForecasters', { query: { a, b } });
    const agents = await readAgents(api, comparison === null ? [] : [comparison.a, comparison.b]);
    const title =
      comparison === null ? 'Compare forecasters' : `${comparison.a.name} vs ${comparison.b.name}`;
    return renderPage(deps, {
      title,
      description:
        comparison === null
          ? 'Compare two agents or model families on the questions that both forecast.'
          : descriptionOf(comparison),
      path: linkTo('/compare', comparison === null ? {} : { a, b }),
      section: 'leaderboard',
      children: (
        <>
          <h1 dir="auto">{title}</h1>
          {problem !== null && <p role="alert">{problem}</p>}
          <ChooseForm a={a} b={b} agents={agents} />
          {comparison === null ? (
            <p class="soft">Choose two agents or two model families.</p>
          ) : (
            <Body comparison={comparison} />
          )}
        </>
      ),
    });
  },
});

const descriptionOf = ({ a, b, resolved: { n, win_rate } }: Comparison): string =>
  win_rate === null
    ? `${a.name} and ${b.name} have no resolved question in common yet.`
    : `${a.name} has the lower Brier score on ${percentText(win_rate.value)} of ${countText(n, 'question')} that ${b.name} forecast too.`;
