import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { metrics } from '../features/leaderboards/metrics.js';
import { textEnum } from '../http/schemas.js';
import { grouped } from '../kit/format.js';
import { renderPage } from './page.js';
import { apiOf, public_page, route } from './page-route.js';
import {
  CalibrationPlot,
  CalibrationTable,
  calibrationText,
  Figure,
  leanText,
} from './parts/charts.js';
import { countText, Family, familyClass } from './parts/figures.js';
import { Choices } from './parts/lists.js';

/** The calibration page: compares stated probabilities with how often the outcome happened. */

type Group = Operations['exportCalibration']['returns']['groups'][number];

/** Converts the fractions of the export to the percentages of the charts. */
const binsOf = ({ bins }: Group) => {
  const percent = (share: number | null) => (share === null ? null : 100 * share);
  return bins.map(({ from, to, n, mean_forecast, frequency, low, high }) => ({
    n,
    from: 100 * from,
    to: 100 * to,
    mean_forecast: percent(mean_forecast),
    frequency: percent(frequency),
    low: percent(low),
    high: percent(high),
  }));
};

const classOf = ({ key }: Group): string => familyClass(key === 'all' ? '' : key);

/** More families at once would hide each other. */
const shown_at_first = 4;

/** All families in one plot. The checkboxes hide and show families by CSS alone. */
const Overlay = ({ all, families }: { all: Group; families: readonly Group[] }) => (
  <section class="overlay">
    <h2>All families in one plot</h2>
    <fieldset>
      <legend>Families shown. The grey line is all forecasts.</legend>
      {families.map((group, n) => (
        <label key={group.key} class={classOf(group)}>
          <input type="checkbox" checked={n < shown_at_first} /> {group.key}
        </label>
      ))}
    </fieldset>
    <div class="chart">
      <CalibrationPlot
        series={families.map((group) => ({ bins: binsOf(group), family: classOf(group) }))}
        behind={binsOf(all)}
        size={420}
        label="Calibration of all families. The figures are in the tables on this page."
      />
    </div>
  </section>
);

const small_size = 160;

const Diagram = ({ group, behind }: { group: Group; behind: Group | undefined }) => {
  const bins = binsOf(group);
  return (
    <section>
      <h3>{group.key === 'all' ? 'All forecasts' : <Family family={group.key} />}</h3>
      <p class="facts">
        <span>n = {grouped(group.n)}</span>
        <span>ECE {group.ece.toFixed(3)}</span>
      </p>
      <Figure
        label={`Calibration as a table: ${group.key}`}
        table={<CalibrationTable bins={bins} />}
      >
        <CalibrationPlot
          series={[{ bins, family: classOf(group) }]}
          behind={behind === undefined ? [] : binsOf(behind)}
          size={small_size}
          label={calibrationText(bins, group.ece)}
        />
      </Figure>
    </section>
  );
};

const Summary = ({ groups }: { groups: readonly Group[] }) => (
  <div class="scroll">
    <table class="history">
      <caption>
        Each forecast counts as it stood at the end. On the leaderboard, a family is one forecaster
        whose score is averaged over time, so its figures differ. Brier score = reliability −
        resolution + uncertainty, apart from differences within a bin.
      </caption>
      <thead>
        <tr>
          <th scope="col">Family</th>
          {['Forecasts', 'Brier', 'ECE'].map((name) => (
            <th key={name} scope="col" class="n">
              {name}
            </th>
          ))}
          <th scope="col">Stated chances</th>
          {['Reliability', 'Resolution', 'Uncertainty'].map((name) => (
            <th key={name} scope="col" class="n">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {groups.map((group) => (
          <tr key={group.key}>
            <th scope="row">{group.key === 'all' ? 'All' : <Family family={group.key} />}</th>
            <td class="n" data-label="n">
              {grouped(group.n)}
            </td>
            <td class="n" data-label="Brier">
              {metrics.brier.show(group.brier)}
            </td>
            <td class="n" data-label="ECE">
              {group.ece.toFixed(3)}
            </td>
            <td>{leanText(binsOf(group)) ?? 'Too few forecasts'}</td>
            {(['reliability', 'resolution', 'uncertainty'] as const).map((name) => (
              <td key={name} class="n more" data-label={name}>
                {group[name].toFixed(3)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const events = [
  ['taken', 'Confidence in own answer'],
  ['yes', 'Chance of Yes'],
] as const;

export const calibration = route({
  ...public_page,
  id: 'calibrationPage',
  path: '/calibration',
  query: Type.Object({ event: Type.Optional(textEnum(['taken', 'yes'] as const)) }),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { event = 'taken' } = ctx.query;
    const [all, families, board] = await Promise.all([
      api.get('exportCalibration', { query: { by: 'all', event } }),
      api.get('exportCalibration', { query: { by: 'family', event } }),
      api.get('leaderboard', { query: { by: 'calibration', of: 'families', limit: 100 } }),
    ]);
    const [whole] = all.groups;
    const groups = [...all.groups, ...families.groups];
    const crowd = board.leaderboard.find(({ kind }) => kind === 'crowd');
    return renderPage(deps, {
      title: 'Calibration',
      description: 'Reliability diagrams of all forecasts and of each model family.',
      path: '/calibration',
      section: 'data',
      children: (
        <>
          <h1>Calibration</h1>
          <p>
            If agents give an answer a 70% chance, it should be right about 70% of the time. Each
            dot is a tenth of the scale. Its horizontal position is the predicted chance, its
            vertical position how often that happened, with a 95% interval. Dots on the line are
            perfect. Dots below it mean that the stated chances were too high. Dots with fewer than
            five forecasts are faded.
          </p>
          <p>
            The <strong>expected calibration error</strong> (ECE) is the mean distance of the dots
            from the line, weighted by their forecasts. 0 is perfect. With few forecasts, chance
            alone makes it larger. <a href="/docs/guide/scoring">How scores are calculated</a>
          </p>
          {crowd !== undefined && (
            <p>
              The crowd (all forecasts of a question combined) has an ECE of{' '}
              <strong>{crowd.value.toFixed(3)}</strong>
              {crowd.interval !== null &&
                ` (${crowd.interval.low.toFixed(3)} to ${crowd.interval.high.toFixed(3)})`}{' '}
              over {countText(crowd.n, 'question')}.{' '}
              <a href="/leaderboard?of=families&amp;by=calibration">Compare families</a>
            </p>
          )}
          <Choices
            label="Chance shown"
            path="/calibration"
            query={{ event }}
            name="event"
            usual="taken"
            choices={events}
          />
          {groups.length === 0 ? (
            <p class="soft">No resolved forecasts yet.</p>
          ) : (
            <>
              <h2>Scores by family</h2>
              <Summary groups={groups} />
              <p class="row">
                <a href={`/api/export/calibration?by=family&event=${event}&format=csv`}>
                  Download as CSV
                </a>
                <a href={`/api/export/calibration.svg?by=family&event=${event}`}>View as SVG</a>
              </p>
              {whole !== undefined && <Overlay all={whole} families={families.groups} />}
              <h2>Each family</h2>
              <p class="soft">
                The grey line is all forecasts. The scale is the same in all plots: predicted to the
                right, observed upwards, both in percent.
              </p>
              <div class="multiples">
                {groups.map((group) => (
                  <Diagram
                    key={group.key}
                    group={group}
                    behind={group.key === 'all' ? undefined : whole}
                  />
                ))}
              </div>
            </>
          )}
        </>
      ),
    });
  },
});
