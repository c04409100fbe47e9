import type { Operations } from '#client/wire.js';
import { Change, countText, Time } from './parts/figures.js';
import { OptionBars } from './parts/forecast.js';
import { Prose } from './parts/prose.js';
import { forecastText, outcomeText, valueText, verdictOf } from './parts/question-row.js';
import type { Consensus, Question } from './question-chart.js';

/** The current forecast or, after the resolution, the outcome and whether the crowd was right. */

type Brief = Operations['getIntelBrief']['returns'];

/** Says in words whether the crowd's last forecast was right. Null if that is unknown. */
const verdictText = (question: Question, consensus: Consensus): string | null => {
  const verdict = verdictOf(question, consensus);
  if (verdict === null) return null;
  const { headline } = consensus;
  const why =
    verdict === 'right'
      ? 'the outcome lies in its 90% range'
      : 'the outcome lies outside its 90% range';
  return `The crowd was ${verdict}${headline === undefined ? '' : `: ${why}`}.`;
};

const captionOf = ({ question_type }: Question, leader: string | null) =>
  question_type === 'binary' ? (
    'chance of Yes'
  ) : question_type === 'multi' ? (
    <>
      chance of <bdi>{leader}</bdi>
    </>
  ) : (
    'median'
  );

interface HeroProps {
  readonly question: Question;
  readonly consensus: Consensus;
  readonly brief: Brief;
}

const Bars = ({ question, consensus }: Pick<HeroProps, 'question' | 'consensus'>) => (
  <OptionBars
    options={(consensus.options ?? []).map(({ option, forecast }) => ({
      option: question.correct_options?.includes(option) ? `${option} ✓` : option,
      percent: forecast ?? 0,
    }))}
  />
);

/** Shown once the question is resolved or voided. */
const Over = ({ question, consensus, brief }: HeroProps) => {
  const { status, resolved_at, resolution_note } = question;
  const { brier } = brief.resolution;
  return (
    <>
      <p class="figure">
        <strong dir="auto">{outcomeText(question)}</strong>
        {resolved_at !== null && (
          <span class="soft">
            {status === 'voided' ? 'without an outcome, on ' : 'resolved on '}
            <Time at={resolved_at} day />
          </span>
        )}
      </p>
      {consensus.total_predictions === 0 ? (
        <p>No agent had forecast it.</p>
      ) : (
        <p>
          Last forecast: <strong>{forecastText(consensus.forecast, question)}</strong>{' '}
          {captionOf(question, consensus.leading_option)}. {verdictText(question, consensus)}
          {brier !== null && ` Its Brier score is ${brier.toFixed(2)} (0 is best).`}
        </p>
      )}
      {resolution_note !== null && <Prose text={resolution_note} />}
    </>
  );
};

const Expected = ({ question, consensus, brief }: HeroProps) => {
  const { forecast, leading_option, total_predictions, headline } = consensus;
  const changeOf = (window: string): number | null =>
    brief.momentum.windows.find(({ name }) => name === window)?.change ?? null;
  const changes = [
    [changeOf('1d'), '24 h'],
    [changeOf('7d'), '7 days'],
  ] as const;
  return (
    <>
      <p class="figure">
        <strong>{forecastText(forecast, question)}</strong>{' '}
        <span>{captionOf(question, leading_option)}</span>
      </p>
      <p class="facts">
        {headline === undefined ? (
          changes.map(
            ([points, over]) =>
              points !== null && <Change key={over} points={points} over={over} />,
          )
        ) : (
          <span>
            50% chance between {valueText(headline.p25, question)} and{' '}
            {valueText(headline.p75, question)}
          </span>
        )}
        <span>{countText(total_predictions, 'forecast')}</span>
        {consensus.contested && <span>contested</span>}
      </p>
    </>
  );
};

/** Returns other figures for comparison with the headline. */
const othersOf = ({ options = [], candidates = [], ...consensus }: Consensus) => {
  if (consensus.headline !== undefined) {
    return candidates.map(({ name, forecast }) => [name.replace('_', ' '), forecast] as const);
  }
  const leader = options.find(({ option }) => option === consensus.leading_option);
  const of_options = candidates.find(({ name }) => name === 'median')?.forecast ?? null;
  return [
    ['median', leader === undefined ? consensus.median_probability : of_options],
    ['mean', (leader ?? consensus).mean_probability],
  ] as const;
};

const Method = ({ question, consensus }: Pick<HeroProps, 'question' | 'consensus'>) => (
  <>
    <p class="facts">
      {othersOf(consensus).map(
        ([name, value]) =>
          value !== null && (
            <span key={name}>
              {name} {forecastText(value, question)}
            </span>
          ),
      )}
    </p>
    <p class="soft">
      {consensus.method === 'mixture-1' &&
        'The forecast combines several averages. Averages that did better on resolved questions weigh more. '}
      <a href="/method">How it is made</a>
    </p>
  </>
);

export const Hero = (props: HeroProps) => {
  const { question, consensus } = props;
  const is_over = outcomeText(question) !== null;
  return (
    <div class="hero" data-live="hero">
      {is_over ? (
        <Over {...props} />
      ) : consensus.total_predictions > 0 ? (
        <Expected {...props} />
      ) : (
        <p class="figure">
          <strong>–</strong> <span>no forecasts yet</span>
        </p>
      )}
      {consensus.total_predictions > 0 && (
        <>
          <Bars question={question} consensus={consensus} />
          <Method question={question} consensus={consensus} />
        </>
      )}
      {question.status === 'closed' && (
        <p>
          Agents can no longer forecast this question. It resolves by{' '}
          <Time at={question.resolution_date} day />.
        </p>
      )}
    </div>
  );
};
