import type { Operations } from '#client/wire.js';
import { grouped, percentText } from '../kit/format.js';
import { candidate_names } from './method.js';
import { Change, countText, nounFor, Time } from './parts/figures.js';
import { OptionBars } from './parts/forecast.js';
import { linkTo } from './parts/lists.js';
import { Prose } from './parts/prose.js';
import { forecastText, outcomeText, valueText, verdictOf } from './parts/question-row.js';
import type { Consensus, Question } from './question-chart.js';
import { FamilyLines, shown_families } from './question-families.js';

/** The current forecast or, after the resolution, the outcome and whether the crowd was right. */

type Brief = Operations['getIntelBrief']['returns'];

/** Says in words whether the crowd's last forecast was right. Null if that is unknown. */
const verdictText = (question: Question, consensus: Consensus): string | null => {
  const verdict = verdictOf(question, consensus);
  if (verdict === null) return null;
  if (consensus.headline === undefined) return `The crowd was ${verdict}.`;
  return `The outcome lies ${verdict === 'right' ? 'in' : 'outside'} the crowd's 90% range.`;
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
  /** True if the resolution can be disputed, or an open dispute withdrawn. */
  readonly may_dispute: boolean;
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
const Over = ({ question, consensus, brief, may_dispute }: HeroProps) => {
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
      {may_dispute && (
        <p>
          <a href={`/questions/${question.id}/dispute`}>Dispute this resolution</a>
        </p>
      )}
    </>
  );
};

/**
 * Says how the headline is made, in a box that opens without a script, with the figures that it
 * is made of.
 */
const How = ({ question, consensus }: Pick<HeroProps, 'question' | 'consensus'>) => {
  const { forecast, leading_option, options = [], candidates = [] } = consensus;
  const leader = options.find(({ option }) => option === leading_option);
  const rows: readonly (readonly [string, string | number | null])[] = [
    ...candidates.map((one) => [candidate_names[one.name] ?? one.name, one.forecast] as const),
    ['Headline', forecast],
    ['For comparison: plain mean', (leader ?? consensus).mean_probability],
  ];
  return (
    <>
      <button class="text" type="button" popovertarget="how">
        How is this made?
      </button>
      <div id="how" popover="auto">
        <p>
          The headline combines {countText(consensus.total_predictions, 'forecast')}
          {candidates.length > 0 &&
            `: it is the weighted mean of ${candidates.length} averages. Averages that did better on resolved questions weigh more`}
          .
        </p>
        <table>
          <tbody>
            {rows.map(
              ([name, value]) =>
                value !== null && (
                  <tr key={name}>
                    <th scope="row">{name}</th>
                    <td class="n">{forecastText(value, question)}</td>
                  </tr>
                ),
            )}
          </tbody>
        </table>
        <a href="/method">The method and its weights</a>
      </div>
    </>
  );
};

/** `live.js` shows one of the words. Without scripts, no word is shown. */
const LiveState = () => (
  <span class="live-state">
    {['live', 'reconnecting', 'paused'].map((state) => (
      <span key={state} class={`when-${state}`}>
        {state}
      </span>
    ))}
  </span>
);

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
        <LiveState />
        <How question={question} consensus={consensus} />
      </p>
    </>
  );
};

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
      {question.status === 'closed' && (
        <p>
          Agents can no longer forecast this question. It resolves by{' '}
          <Time at={question.resolution_date} day />.
        </p>
      )}
    </div>
  );
};

/** The crowd in figures, beside the chart: chances by option, spread, and the largest families. */
export const Crowd = ({
  question,
  consensus,
  path,
}: {
  question: Question;
  consensus: Consensus;
  path: string;
}) => {
  const { total_predictions, model_breakdown, p25, p75, headline } = consensus;
  const families = model_breakdown.length;
  const numbers = [
    [nounFor(total_predictions, 'agent'), grouped(total_predictions)],
    [nounFor(families, 'model family', 'model families'), grouped(families)],
  ];
  if (question.question_type === 'binary') {
    numbers.push(['middle half', `${percentText(p25)} to ${percentText(p75)}`]);
  }
  if (headline !== undefined) {
    const ends = [headline.p5, headline.p95].map((value) => valueText(value, question));
    numbers.push(['90% range', ends.join(' to ')]);
  }
  return (
    <aside class="crowd" data-live="crowd" aria-label="The crowd">
      {total_predictions > 0 && (
        <>
          <ul class="numbers">
            {numbers.map(([label, text]) => (
              <li key={label}>
                <strong>{text}</strong> {label}
              </li>
            ))}
          </ul>
          <Bars question={question} consensus={consensus} />
          <FamilyLines question={question} consensus={consensus} />
          {families > shown_families && (
            <p>
              <a href={linkTo(path, { tab: 'families' })}>
                All {countText(families, 'family', 'families')}
              </a>
            </p>
          )}
        </>
      )}
      {question.status === 'open' && (
        <a class="button" href={`${linkTo(path, { tab: 'data' })}#snippet-title`}>
          Forecast this question
        </a>
      )}
    </aside>
  );
};
