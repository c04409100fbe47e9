import type { Operations } from '#client/wire.js';
import { isExact } from '../../http/validation.js';

/** Form fields for the outcome of a question, depending on its type. */

export type AdminQuestion = Operations['listAdminQuestions']['returns']['questions'][number];

export type OutcomeForm = {
  readonly outcome?: string;
  readonly outcome_value?: string;
  readonly correct_options?: string | readonly string[];
};

/**
 * Returns the outcome as members of a request body. An `outcome_value` that is not a number is a
 * UTC time to the minute.
 */
export const readOutcome = (form: OutcomeForm) => {
  const { outcome, outcome_value: value = '', correct_options: options = [] } = form;
  const number = isExact(value) ? Number(value) : Number.NaN;
  return {
    ...(outcome === undefined ? {} : { outcome: outcome === 'yes' }),
    ...(options.length === 0 ? {} : { correct_options: [options].flat() }),
    ...(value === '' ? {} : { outcome_value: Number.isNaN(number) ? `${value}:00Z` : number }),
  };
};

const Choice = ({
  id,
  name,
  value,
  label,
  type,
  chosen,
}: {
  id: string;
  name: string;
  value: string;
  label: string;
  type: 'radio' | 'checkbox';
  chosen: boolean;
}) => (
  <div>
    <input
      id={id}
      type={type}
      name={name}
      value={value}
      checked={chosen}
      required={type === 'radio'}
    />{' '}
    <label class="beside" for={id} dir="auto">
      {label}
    </label>
  </div>
);

/** `id` makes the element ids unique if a page has several such forms. */
export const OutcomeFields = ({
  question,
  id,
  form = {},
}: {
  question: Pick<AdminQuestion, 'question_type' | 'options' | 'range'>;
  id: string;
  form?: OutcomeForm;
}) => {
  const { question_type, options, range } = question;
  if (question_type === 'binary') {
    return (
      <fieldset>
        <legend>Outcome</legend>
        {['yes', 'no'].map((value) => (
          <Choice
            key={value}
            id={`${value}-${id}`}
            type="radio"
            name="outcome"
            value={value}
            label={value === 'yes' ? 'Yes' : 'No'}
            chosen={form.outcome === value}
          />
        ))}
      </fieldset>
    );
  }
  if (question_type === 'multi') {
    const named = [form.correct_options ?? []].flat();
    return (
      <fieldset>
        <legend>Correct options</legend>
        {options.map((option, n) => (
          <Choice
            key={option}
            id={`option-${n}-${id}`}
            type="checkbox"
            name="correct_options"
            value={option}
            label={option}
            chosen={named.includes(option)}
          />
        ))}
      </fieldset>
    );
  }
  const unit = range?.unit ?? null;
  return (
    <div class="field">
      <label for={`value-${id}`}>
        {question_type === 'date' ? 'Date of the outcome (UTC)' : 'Value'}
        {unit === null ? '' : ` (${unit})`}
      </label>
      <input
        id={`value-${id}`}
        {...(question_type === 'date' ? { type: 'datetime-local' as const } : {})}
        name="outcome_value"
        required
        value={form.outcome_value}
      />
    </div>
  );
};
