import type { Operations } from '#client/wire.js';
import { atFields, Field, type FormFault, problemOf, Select, TextArea } from './forms.js';
import type { AdminQuestion } from './outcome.js';

/** Converts a question to form fields and back. All times are UTC, as the form says. */

export type DraftForm = Readonly<Record<DraftField, string | undefined>>;
type Body = Operations['createQuestion']['body'];

export const draft_fields = [
  ...([
    'question',
    'description',
    'place',
    'tags',
    'question_type',
    'options',
    'range_min',
  ] as const),
  ...(['range_max', 'unit', 'open_min', 'open_max', 'opens_at', 'closes_at'] as const),
  ...(['resolution_date', 'resolution_source', 'resolution_url', 'weight'] as const),
] as const;
type DraftField = (typeof draft_fields)[number];

const minute = (at: string | null | undefined): string => at?.slice(0, 16) ?? '';
const timeIn = (text: string): string | null => (text === '' ? null : `${text.slice(0, 16)}:00Z`);

const types = [
  ['binary', 'Yes or no'],
  ['multi', 'Multiple choice'],
  ['numeric', 'Numeric'],
  ['date', 'Date'],
] as const;

export const formOf = (question: AdminQuestion): DraftForm => ({
  question: question.question,
  description: question.description,
  place: [question.category, question.subcategory].filter(Boolean).join('/'),
  tags: question.tags.join(' '),
  question_type: question.question_type,
  options: question.options.join('\n'),
  range_min: String(question.range?.min ?? ''),
  range_max: String(question.range?.max ?? ''),
  unit: question.range?.unit ?? '',
  open_min: question.range?.open_min ? 'on' : undefined,
  open_max: question.range?.open_max ? 'on' : undefined,
  opens_at: minute(question.opens_at),
  closes_at: minute(question.closes_at),
  resolution_date: minute(question.resolution_date),
  resolution_source: question.resolution_source ?? '',
  resolution_url: question.resolution_url ?? '',
  weight: String(question.weight),
});

const linesOf = (text: string): string[] =>
  text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));

/** Converts the form to a request body of the API. */
const bodyOf = (form: DraftForm) => {
  const text = (name: DraftField): string => form[name]?.trim() ?? '';
  const [category = '', subcategory] = text('place').split('/');
  const type = types.find(([one]) => one === form.question_type)?.[0] ?? 'binary';
  const is_number = type === 'numeric';
  const end = (name: DraftField) =>
    is_number && text(name) !== '' ? Number(text(name)) : text(name);
  const range = {
    min: end('range_min'),
    max: end('range_max'),
    unit: text('unit') || null,
    open_min: form.open_min === 'on',
    open_max: form.open_max === 'on',
  };
  return {
    question: text('question'),
    description: text('description'),
    category,
    subcategory: subcategory ?? null,
    tags: text('tags')
      .split(/[\s,]+/)
      .filter(Boolean),
    question_type: type,
    options: type === 'multi' ? linesOf(form.options ?? '') : [],
    range: is_number || type === 'date' ? range : null,
    opens_at: timeIn(text('opens_at')),
    closes_at: timeIn(text('closes_at')),
    resolution_date: timeIn(text('resolution_date')),
    resolution_source: text('resolution_source') || null,
    resolution_url: text('resolution_url') || null,
    weight: Number(text('weight')) || 1,
  };
};

export const newQuestion = (form: DraftForm): Body => bodyOf(form);

/** Returns only the changed members, since few members of a published question can be changed. */
export const changesOf = (form: DraftForm, question: AdminQuestion) => {
  const [before, after] = [bodyOf(formOf(question)), bodyOf(form)];
  const changed = Object.entries(after).filter(
    ([name, value]) =>
      JSON.stringify(value) !== JSON.stringify(before[name as keyof typeof before]),
  );
  return Object.fromEntries(changed) as Partial<Omit<typeof after, 'closes_at'>>;
};

type Taxonomy = Operations['getTaxonomy']['returns'];

const placesOf = (taxonomy: Taxonomy) =>
  taxonomy.flatMap((category) => [
    [category.slug, category.name] as const,
    ...category.subcategories.map(
      (one) => [`${category.slug}/${one.slug}`, `${category.name}: ${one.name}`] as const,
    ),
  ]);

/** Maps members of the body to form fields that have a different name. */
const members = {
  category: 'place',
  subcategory: 'place',
  'range.unit': 'unit',
  'range.min': 'range_min',
  'range.max': 'range_max',
  range: 'range_min',
};

export const DraftFields = ({
  form,
  taxonomy,
  fault: given,
}: {
  form: Partial<DraftForm>;
  taxonomy: Taxonomy;
  fault: FormFault;
}) => {
  const fault = given === null ? null : atFields(given, { members });
  const field = (name: DraftField) => ({ name, fault, value: form[name] ?? '' });
  const of_type = ['options', 'range_min', 'range_max', 'unit'] as const;
  const has_range = of_type.some((name) => form[name] || problemOf(fault, name) !== undefined);
  const time = { type: 'datetime-local' as const };
  return (
    <>
      <Field {...field('question')} label="Question" required minLength={10} maxLength={500} />
      <TextArea
        {...field('description')}
        label="Resolution criteria"
        hint="State what counts, which source decides, and how unclear cases resolve."
        rows={6}
      />
      <Select {...field('place')} label="Category" options={placesOf(taxonomy)} />
      <Field {...field('tags')} label="Tags" hint="Separate tags with spaces." />
      <Select {...field('question_type')} label="Question type" options={types} />
      <details open={has_range}>
        <summary>Options or range</summary>
        <TextArea
          {...field('options')}
          label="Options"
          hint="One per line. Only for questions with options."
        />
        <Field
          {...field('range_min')}
          label="Minimum"
          hint="Only for numeric and date questions."
        />
        <Field {...field('range_max')} label="Maximum" />
        <Field {...field('unit')} label="Unit" hint="Such as USD. Only for numeric questions." />
        {(['open_min', 'open_max'] as const).map((name) => (
          <div class="field" key={name}>
            <input id={name} name={name} type="checkbox" checked={form[name] === 'on'} />{' '}
            <label class="beside" for={name}>
              {name === 'open_min' ? 'May be lower' : 'May be higher'}
            </label>
          </div>
        ))}
      </details>
      <Field
        {...field('opens_at')}
        {...time}
        label="Opens (UTC)"
        hint="If empty, it opens when it is published."
      />
      <Field {...field('closes_at')} {...time} label="Closes (UTC)" />
      <Field {...field('resolution_date')} {...time} label="Resolves by (UTC)" />
      <Field {...field('resolution_source')} label="Resolution source" maxLength={500} />
      <Field {...field('resolution_url')} label="Source URL" type="url" maxLength={2_048} />
      <Field
        {...field('weight')}
        label="Weight (1 to 5)"
        value={form.weight ?? '1'}
        type="number"
        min={1}
        max={5}
      />
    </>
  );
};
