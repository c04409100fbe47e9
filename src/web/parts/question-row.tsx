import type { Operations } from '../../client/wire.js';
import { dayText, grouped } from '../../kit/prose.js';
import { Ago, Change, countText, percentText, Sparkline } from './figures.js';

/** A question in a list, with its headline forecast. */

export type ListedQuestion = Operations['listQuestions']['returns']['questions'][number];

export type AnyQuestion = Pick<
  ListedQuestion,
  'question_type' | 'range' | 'status' | 'outcome' | 'correct_options' | 'outcome_value'
>;

/** A number or a date as the question counts it. */
export const valueText = (
  value: string | number,
  { question_type, range }: AnyQuestion,
): string => {
  if (question_type === 'date') return dayText(new Date(value));
  const n = Number(value);
  const text = Number.isInteger(n) && Math.abs(n) >= 1_000 ? grouped(n) : String(n);
  return range?.unit ? `${text} ${range.unit}` : text;
};

/** What is expected, in as few letters as there can be. */
export const forecastText = (
  forecast: string | number | null | undefined,
  question: AnyQuestion,
): string => {
  if (forecast === null || forecast === undefined) return '–';
  const is_chance = question.question_type === 'binary' || question.question_type === 'multi';
  return is_chance ? percentText(Number(forecast)) : valueText(forecast, question);
};

/** What happened; null while it is open. */
export const outcomeText = (question: AnyQuestion): string | null => {
  const { status, outcome, correct_options, outcome_value } = question;
  if (status === 'voided') return 'Voided';
  if (status !== 'resolved') return null;
  if (outcome !== null) return outcome ? 'Yes' : 'No';
  if (correct_options !== null) return correct_options.join(', ');
  return outcome_value === null ? 'Resolved' : valueText(outcome_value, question);
};

const When = ({ question, now }: { question: ListedQuestion; now: Date }) => {
  const { status, closes_at, resolved_at } = question;
  if (resolved_at !== null && status === 'resolved') {
    return <>resolved {<Ago at={resolved_at} now={now} />}</>;
  }
  if (status === 'open') return <>closes {<Ago at={closes_at} now={now} />}</>;
  return <>{status}</>;
};

export const QuestionRow = ({ question, now }: { question: ListedQuestion; now: Date }) => {
  const { id, consensus, trend, prediction_count, question_type } = question;
  const outcome = outcomeText(question);
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
            {question_type === 'binary' && <small>Yes</small>}
            {leader != null && <small dir="auto">{leader}</small>}
          </>
        ) : (
          <strong class="outcome" dir="auto">
            {outcome}
          </strong>
        )}
      </span>
      <Sparkline trend={trend} />
      <p class="facts">
        {outcome === null && <Change points={consensus?.change_24h} over="24 h" />}
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
  /** What is said where there are none. */
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
