import type { Operations } from '#client/wire.js';
import * as range_text from '../../features/questions/range.js';
import { percentText } from '../../kit/format.js';
import { Ago, Change, countText, familyClass, Sparkline } from './figures.js';

/** A question in a list, with the crowd's forecast. */

export type ListedQuestion = Operations['listQuestions']['returns']['questions'][number];

export type AnyQuestion = Pick<
  ListedQuestion,
  'question_type' | 'range' | 'status' | 'outcome' | 'correct_options' | 'outcome_value'
>;

/** Formats a number or a date with the unit and precision of the question. */
export const valueText = (
  value: string | number,
  { question_type, range }: AnyQuestion,
): string => {
  const { min = 0, max = 0, unit = null } = range ?? {};
  const ends = { range_min: Number(min), range_max: Number(max) };
  return range_text.valueText(value, { question_type, unit, ...ends });
};

/** Returns the crowd's forecast in its shortest form. */
export const forecastText = (
  forecast: string | number | null | undefined,
  question: AnyQuestion,
): string => {
  if (forecast === null || forecast === undefined) return '–';
  const is_chance = question.question_type === 'binary' || question.question_type === 'multi';
  return is_chance ? percentText(Number(forecast)) : valueText(forecast, question);
};

/** Returns the outcome in words. Null if the question is neither resolved nor voided. */
export const outcomeText = (question: AnyQuestion): string | null => {
  const { status, outcome, correct_options, outcome_value } = question;
  if (status === 'voided') return 'Voided';
  if (status !== 'resolved') return null;
  if (outcome !== null) return outcome ? 'Yes' : 'No';
  if (correct_options !== null) return correct_options.join(', ');
  return outcome_value === null ? 'Resolved' : valueText(outcome_value, question);
};

/** Returns the side of a question as pages write it: `Yes` and `No` instead of `YES` and `NO`. */
export const sideText = (position: string): string =>
  position === 'YES' ? 'Yes' : position === 'NO' ? 'No' : position;
const When = ({ question, now }: { question: ListedQuestion; now: Date }) => {
  const { status, closes_at, resolved_at } = question;
  if (resolved_at !== null && status === 'resolved') {
    return <>resolved {<Ago at={resolved_at} now={now} />}</>;
  }
  if (status === 'open') return <>closes {<Ago at={closes_at} now={now} />}</>;
  return <>{status}</>;
};

/** The position of a model family, from 0 to 100. */
export interface FamilyDot {
  readonly family: string;
  readonly place: number;
}

interface Crowd {
  readonly forecast: string | number | null;
  readonly leading_option: string | null;
  readonly headline?: { readonly p5: string | number; readonly p95: string | number };
}

/**
 * Says whether the crowd's last forecast was right. For a number or a date: whether the outcome
 * lies in its 90 % interval. Null if the outcome, the forecast or the quantiles are missing.
 */
export const verdictOf = (
  question: AnyQuestion,
  { forecast, leading_option, headline }: Crowd,
): 'right' | 'wrong' | 'undecided' | null => {
  const { status, outcome, correct_options, outcome_value } = question;
  if (status !== 'resolved' || forecast === null) return null;
  const say = (is_right: boolean) => (is_right ? 'right' : 'wrong');
  if (outcome !== null)
    return forecast === 50 ? 'undecided' : say(Number(forecast) > 50 === outcome);
  if (correct_options !== null) return say(correct_options.includes(leading_option ?? ''));
  if (outcome_value === null || headline === undefined) return null;
  return say(headline.p5 <= outcome_value && outcome_value <= headline.p95);
};

/** Returns the verdict and the forecast in a few words. Null if there is no verdict. */
const crowdText = (question: ListedQuestion): string | null => {
  const { consensus } = question;
  const verdict = consensus === undefined ? null : verdictOf(question, consensus);
  if (verdict === null) return null;
  const chance = percentText(Number(consensus?.forecast));
  return `crowd ${verdict} (${chance} ${consensus?.leading_option ?? 'Yes'})`;
};

/** Draws the families of a question on one line. Their names are on the question's page. */
const Spread = ({ dots }: { dots: readonly FamilyDot[] }) => {
  const places = dots.map(({ place }) => place);
  const [low, high] = [Math.min(...places), Math.max(...places)].map((one) => Math.round(one));
  const count = countText(dots.length, 'model family', 'model families');
  const label = `${count}, from ${low} to ${high} of 100`;
  return (
    <svg class="dots" role="img" aria-label={label} width="120" height="14">
      <line class="grid" x1="0" x2="120" y1="7" y2="7" />
      {dots.map(({ family, place }) => (
        <circle
          key={family}
          class={familyClass(family)}
          cx={(5 + Math.min(100, Math.max(0, place)) * 1.1).toFixed(1)}
          cy="7"
          r="4"
        />
      ))}
    </svg>
  );
};

export const QuestionRow = ({
  question,
  now,
  dots = [],
}: {
  question: ListedQuestion;
  now: Date;
  dots?: readonly FamilyDot[];
}) => {
  const { id, consensus, trend, prediction_count, question_type } = question;
  const outcome = outcomeText(question);
  const crowd = crowdText(question);
  const leader = consensus?.leading_option;
  return (
    <li class="question-row" data-live={`row-${id}`}>
      <a class="title" href={`/questions/${id}`} dir="auto">
        {question.question}
      </a>
      <span class="figure">
        {outcome === null ? (
          <>
            <strong>{forecastText(consensus?.forecast, question)}</strong>
            {question_type === 'binary' && prediction_count > 0 && <small>Yes</small>}
            {leader != null && <small dir="auto">{leader}</small>}
          </>
        ) : (
          <strong class="outcome" dir="auto">
            {outcome}
          </strong>
        )}
      </span>
      <Sparkline trend={trend} />
      {dots.length > 1 && <Spread dots={dots} />}
      <p class="facts">
        {outcome === null && consensus?.forecast != null && (
          <Change points={consensus?.change_24h} over="24 h" />
        )}
        {crowd !== null && <span dir="auto">{crowd}</span>}
        <span>{countText(prediction_count, 'forecast')}</span>
        <span>
          <When question={question} now={now} />
        </span>
      </p>
    </li>
  );
};

export const QuestionList = ({
  questions,
  now,
  empty,
}: {
  questions: readonly ListedQuestion[];
  now: Date;
  /** The text shown if the list is empty. */
  empty: string;
}) =>
  questions.length === 0 ? (
    <p class="soft">{empty}</p>
  ) : (
    <ul class="question-list">
      {questions.map((question) => (
        <QuestionRow key={question.id} question={question} now={now} />
      ))}
    </ul>
  );
