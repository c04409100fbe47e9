import { percentText } from '../kit/format.js';
import { countText, Family, familyClass } from './parts/figures.js';
import type { Forecast } from './parts/forecast.js';
import { forecastText } from './parts/question-row.js';
import { type Consensus, isNumber, placeInRange, type Question } from './question-chart.js';

/** Shows the forecasts of model families beside the forecast of the crowd. */

/**
 * Returns the position of a forecast from 0 to 100: its chance of the leading option, or its
 * median within the range of the question.
 */
const placeOf = (forecast: Forecast, question: Question, leader: string | null): number | null => {
  const { probability, prediction, confidence, probabilities, selected_option, quartiles } =
    forecast;
  if (quartiles !== null) return placeInRange(question, quartiles[1]);
  if (leader !== null) {
    if (probabilities !== null) return probabilities[leader] ?? 0;
    return selected_option === leader
      ? confidence
      : (100 - confidence) / (question.options.length - 1);
  }
  return probability ?? (prediction ? confidence : 100 - confidence);
};

/** The families with their number of forecasts and their mean or median, the largest first. */
const familiesOf = (question: Question, { model_breakdown, leading_option }: Consensus) => {
  const at = question.options.indexOf(leading_option ?? '');
  return [...model_breakdown]
    .sort((a, b) => b.count - a.count)
    .map(({ model_family, count, quantiles, mean_probability, option_probabilities }) => {
      const middle = quantiles?.p50 ?? (at < 0 ? mean_probability : option_probabilities?.[at]);
      return {
        model_family,
        count,
        text: quantiles === undefined ? percentText(Number(middle)) : shortText(middle, question),
        place: placeInRange(question, middle),
      };
    });
};

/** A number without its unit, for narrow columns. */
const shortText = (value: string | number | null | undefined, question: Question): string =>
  forecastText(value, { ...question, range: question.range && { ...question.range, unit: null } });

/** Families beside the chart. */
export const shown_families = 8;

/** Shows the mean or median of the largest families beside the forecast of the crowd. */
export const FamilyLines = ({
  question,
  consensus,
}: {
  question: Question;
  consensus: Consensus;
}) => {
  const crowd = placeInRange(question, consensus.forecast);
  return (
    <ul class="strips" aria-label="Forecasts by model family">
      {familiesOf(question, consensus)
        .slice(0, shown_families)
        .map(({ model_family, text, place }) => (
          <li key={model_family}>
            <Family family={model_family} />
            <Strip
              places={place === null ? [] : [place]}
              crowd={crowd}
              family={model_family}
              label={`${model_family}: ${text}`}
            />
            <strong class="n">{text}</strong>
          </li>
        ))}
    </ul>
  );
};

/** Shows a row for each model family, with one dot for each agent's forecast. */
export const StripSection = ({
  question,
  consensus,
  forecasts,
}: {
  question: Question;
  consensus: Consensus;
  forecasts: readonly Forecast[];
}) => {
  const { leading_option } = consensus;
  const rows = familiesOf(question, consensus).map((row) => ({
    ...row,
    places: forecasts
      .filter(({ model_family }) => model_family === row.model_family)
      .map((one) => placeOf(one, question, leading_option))
      .filter((place) => place !== null),
  }));
  const is_all = forecasts.length >= consensus.total_predictions;
  const crowd = placeInRange(question, consensus.forecast);
  const ends = isNumber(question)
    ? [question.range?.min, question.range?.max].map((end) => forecastText(end, question))
    : ['0%', '100%'];
  return (
    <section aria-labelledby="strip-title" data-live="strip">
      <h2 id="strip-title">Forecasts by model family</h2>
      <p class="soft">
        Each dot is{' '}
        {is_all ? 'the forecast of an agent' : `one of the newest ${forecasts.length} forecasts`}
        {leading_option !== null && (
          <>
            {' '}
            (its chance of <bdi>{leading_option}</bdi>)
          </>
        )}
        . The number beside the dots is the {isNumber(question) ? 'median' : 'mean'} of the family,
        and the line is the forecast of the crowd.
      </p>
      <ul class="strips">
        {rows.map(({ model_family, count, text, places }) => (
          <li key={model_family}>
            <Family family={model_family} />
            <Strip
              places={places}
              crowd={crowd}
              family={model_family}
              label={`${countText(count, 'forecast')} of ${model_family}, ${text}`}
            />
            <span class="n">
              <strong>{text}</strong> <span class="soft">· {countText(count, 'agent')}</span>
            </span>
          </li>
        ))}
        <li class="soft ends" aria-hidden="true">
          <span />
          <span class="head-row">
            <small>{ends[0]}</small>
            <small>{ends[1]}</small>
          </span>
        </li>
      </ul>
    </section>
  );
};

const stripX = (place: number): string => `${(1.5 + place * 0.97).toFixed(1)}%`;

/** Draws dots on a line from 0 to 100, and the crowd as a line across. */
const Strip = ({
  places,
  crowd,
  family,
  label,
}: {
  places: readonly number[];
  crowd: number | null;
  family: string;
  label: string;
}) => (
  <svg
    class={`strip ${familyClass(family)}`}
    role="img"
    aria-label={label}
    width="100%"
    height="24"
  >
    <line class="grid" x1="0" x2="100%" y1="12" y2="12" />
    {crowd !== null && (
      <line class="at-crowd" x1={stripX(crowd)} x2={stripX(crowd)} y1="0" y2="24" />
    )}
    {places.map((place, n) => (
      <circle key={n} cx={stripX(place)} cy="12" r="5" />
    ))}
  </svg>
);
