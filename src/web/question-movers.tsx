import type { Operations } from '#client/wire.js';
import type { MoverRange } from '../features/consensus/schema.js';
import { Ago, countText, Family } from './parts/figures.js';
import type { Question } from './question-chart.js';

/** Says why the forecast moved: the forecasts behind its largest changes. */

type Mover = Operations['listMovers']['returns']['movers'][number];

/** Returns a change with its sign and unit. Numbers and dates change by a share of their range. */
const moveText = ({ change }: Mover, { range, question_type }: Question): string => {
  const sign = change > 0 ? '+' : '−';
  const size = Math.abs(change);
  if (range === null) return `${sign}${countText(Number(size.toFixed(size < 1 ? 1 : 0)), 'pt')}`;
  const [min, max] = [range.min, range.max].map((end) =>
    question_type === 'date' ? Date.parse(String(end)) : Number(end),
  ) as [number, number];
  const length = (size / 100) * (max - min);
  if (question_type === 'date')
    return `${sign}${countText(Math.round(length / 86_400_000), 'day')}`;
  return `${sign}${Number(length.toPrecision(2))} ${range.unit ?? ''}`.trim();
};

/** The ranges of the chart, in words. */
const range_texts: Readonly<Record<MoverRange, string>> = {
  '1d': 'of the last day',
  '1w': 'of the last week',
  '1m': 'of the last month',
  all: 'since the question opened',
};

/** The forecasts behind the largest changes in the range of the chart. */
export const Movers = ({
  movers,
  question,
  range,
  now,
}: {
  movers: readonly Mover[];
  question: Question;
  range: MoverRange;
  now: Date;
}) => (
  <section aria-labelledby="movers-title" data-live="movers">
    <h2 id="movers-title">Why did it move?</h2>
    <p class="soft">The largest moves {range_texts[range]}, the largest first.</p>
    <ul class="movers">
      {movers.map((one) => (
        <li key={`${one.prediction_id} ${one.at}`}>
          <strong class={`change ${one.change > 0 ? 'up' : 'down'}`}>
            {moveText(one, question)}
          </strong>
          <div>
            <p class="facts">
              <a href={`/predictions/${one.prediction_id}`} dir="auto">
                {one.user_name}
              </a>
              <Family family={one.model_family} />
              <span>
                {one.is_revision ? 'revised' : 'first forecast'} <Ago at={one.at} now={now} />
              </span>
            </p>
            {one.reason !== null && (
              <p class="clamped" dir="auto">
                {one.reason}
              </p>
            )}
          </div>
        </li>
      ))}
    </ul>
  </section>
);
