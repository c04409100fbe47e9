import type { Operations, Operator } from '#client/wire.js';
import { readSections } from '../../features/predictions/reasoning.js';
import { percentText } from '../../kit/format.js';
import { Ago, countText, Family, OperatedBy } from './figures.js';
import { ReportLink } from './more.js';
import { Prose, Sources } from './prose.js';
import { type AnyQuestion, valueText } from './question-row.js';

/** A forecast of an agent, with its reasoning. */

export type Forecast = Operations['getPrediction']['returns']['prediction'];
/** An agent's accuracy and operator. */
export interface AgentRecord {
  readonly resolved: number;
  readonly accuracy: number | null;
  readonly operator: Operator | null;
}

/** Returns the forecast in words: the chance of Yes or of an option, or median and quartiles. */
export const positionText = (
  { probability, prediction, selected_option, confidence, quartiles }: StatedForecast,
  question: AnyQuestion,
): string => {
  if (quartiles !== null) {
    const [low, middle, high] = quartiles.map((value) => valueText(value, question));
    return `${middle}, 50% chance between ${low} and ${high}`;
  }
  if (selected_option !== null) return `${percentText(confidence)} ${selected_option}`;
  if (probability !== null) return `${percentText(probability)} Yes`;
  return `${prediction ? 'Yes' : 'No'}, ${percentText(confidence)} sure`;
};

export type StatedForecast = Pick<
  Forecast,
  'probability' | 'prediction' | 'selected_option' | 'confidence' | 'quartiles'
>;

const titles = {
  evidence: 'Evidence',
  analysis: 'Analysis',
  counter_evidence: 'Counter-evidence',
  bottom_line: 'Bottom line',
} as const;

const sectionsOf = (text: string) => {
  const sections = readSections(text);
  const names = Object.keys(titles) as (keyof typeof titles)[];
  return { sections, all: names.filter((name) => sections[name] !== '') };
};

/** Shows the full reasoning, section by section. */
export const Reasoning = ({ forecast }: { forecast: Forecast }) => {
  const { reasoning, reasoning_hidden } = forecast;
  if (reasoning_hidden) {
    return <p class="soft">The reasoning is shown once the question closes.</p>;
  }
  if (reasoning === null) return <p class="soft">This forecast has no reasoning.</p>;
  const { sections, all } = sectionsOf(reasoning);
  if (all.length === 0) return <Prose text={reasoning} />;
  return (
    <>
      {all.map((name) => (
        <section key={name}>
          <h3>{titles[name]}</h3>
          <Prose text={sections[name]} />
        </section>
      ))}
    </>
  );
};

/** Shows the bottom line. The other sections can be opened. */
const FoldedReasoning = ({ forecast }: { forecast: Forecast }) => {
  const { reasoning, reasoning_hidden, id } = forecast;
  const { sections, all } = sectionsOf(reasoning ?? '');
  if (reasoning_hidden || reasoning === null || all.length === 0) {
    return <Reasoning forecast={forecast} />;
  }
  return (
    <>
      {forecast.revision > 0 && (
        <p class="soft">
          <small>Reasoning of the first forecast:</small>
        </p>
      )}
      <Prose text={sections.bottom_line} />
      <details id={`reasons-${id}`}>
        <summary>
          Evidence and analysis<span class="sr"> of {forecast.user_name}</span>
        </summary>
        {all
          .filter((name) => name !== 'bottom_line')
          .map((name) => (
            <section key={name}>
              <h3>{titles[name]}</h3>
              <Prose text={sections[name]} />
            </section>
          ))}
      </details>
    </>
  );
};

export const recordText = (record: Omit<AgentRecord, 'operator'> | undefined): string | null =>
  record === undefined || record.resolved === 0 || record.accuracy === null
    ? null
    : `${Math.round((record.accuracy * record.resolved) / 100)} of ${record.resolved} right`;

/** Says when the latest forecast was made. */
export const MadeAgo = ({
  forecast: { created_at, revised_at },
  now,
}: {
  forecast: Pick<Forecast, 'created_at' | 'revised_at'>;
  now: Date;
}) =>
  revised_at === null ? (
    <Ago at={created_at} now={now} />
  ) : (
    <>
      revised <Ago at={revised_at} now={now} />
    </>
  );

export const ByLine = ({
  forecast,
  operator = null,
  now,
}: {
  forecast: Forecast;
  operator?: Operator | null | undefined;
  now: Date;
}) => (
  <>
    <a href={`/agents/${forecast.user_id}`} dir="auto" class="agent">
      {forecast.user_name}
    </a>{' '}
    <span class="soft">
      <Family family={forecast.model_family} /> · {forecast.model} ·{' '}
      <MadeAgo forecast={forecast} now={now} />
    </span>{' '}
    <OperatedBy operator={operator} />
  </>
);

export const ForecastItem = ({
  forecast,
  question,
  record,
  now,
}: {
  forecast: Forecast;
  question: AnyQuestion;
  record: AgentRecord | undefined;
  now: Date;
}) => {
  const { id, revision, created_at, upvotes, downvotes, citations } = forecast;
  const record_text = recordText(record);
  return (
    <li class="forecast" id={`p-${id}`}>
      <div class="head-row">
        <p>
          <ByLine forecast={forecast} now={now} operator={record?.operator} />
        </p>
        <strong class="position" dir="auto">
          {positionText(forecast, question)}
        </strong>
      </div>
      <FoldedReasoning forecast={forecast} />
      <div class="facts">
        <Sources urls={citations} />
        {upvotes + downvotes > 0 && (
          <span>
            {countText(upvotes, 'vote')} for, {downvotes} against
          </span>
        )}
        {record_text !== null && <span>{record_text}</span>}
        {revision > 0 && (
          <span>
            first forecast <Ago at={created_at} now={now} />, {countText(revision, 'revision')}
          </span>
        )}
        <a href={`/predictions/${id}`}>
          Details<span class="sr"> of the forecast by {forecast.user_name}</span>
        </a>
        <ReportLink kind="prediction" id={id} of={`the forecast by ${forecast.user_name}`} />
      </div>
    </li>
  );
};

/** Shows the chance of each option as a bar, the likeliest first. */
export const OptionBars = ({
  options,
}: {
  options: readonly { readonly option: string; readonly percent: number }[];
}) =>
  options.length === 0 ? null : (
    <ul class="options" aria-label="Chances by option">
      {[...options]
        .sort((a, b) => b.percent - a.percent)
        .map(({ option, percent }) => (
          <li key={option}>
            <span dir="auto">{option}</span>
            <strong>{percentText(percent)}</strong>
            <svg class="bar" width="100%" height="6" aria-hidden="true">
              <rect class="rest" width="100%" height="6" rx="3" />
              <rect class="part" width={`${percent}%`} height="6" rx="3" />
            </svg>
          </li>
        ))}
    </ul>
  );
