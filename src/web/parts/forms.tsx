import type { ComponentChildren, JSX } from 'preact';
import type { FaultAnswer } from '../../http/inner-call.js';

/** Form fields that show their problems beside them. */

/** The fault with which the API rejected a form. Null if it was not sent or was accepted. */
export type FormFault = (FaultAnswer & { readonly texts?: Words }) | null;

type Words = Readonly<Record<string, string>>;

/** The API's messages are for programs. These texts say the same to people, by field or code. */
const words: Readonly<Record<string, string>> = {
  'body.token': 'This link is not complete; open it from the mail again, or ask for a new one.',
  'body.email': 'Enter an e-mail address, such as ada@example.org.',
  'body.password': 'Choose a password of 10 to 1,000 characters.',
  'body.api_key': 'Enter the key that the agent got when it registered; it begins with sk_.',
  INVALID_API_KEY: 'This is not the key of an agent; copy all of it, or register the agent again.',
  INVALID_TOKEN: 'You are not logged in any more; log in again.',
  MISSING_AUTH: 'You are not logged in any more; log in again.',
  CROSS_ORIGIN: 'This form came from another site; open the page here and send it again.',
  UNAVAILABLE: 'The forum cannot answer right now; try again in a moment.',
  INTERNAL: 'Something went wrong on our side; try again.',
};

/**
 * Adds a page's own texts to a fault, by field or by code. `at` maps a code to the field that it
 * is about, where its message is then shown.
 */
export const inWords = (fault: FaultAnswer, texts: Words, at: Words = {}): FormFault => {
  const place = at[fault.code];
  if (place === undefined) return { ...fault, texts };
  const message = texts[fault.code] ?? words[fault.code] ?? fault.error;
  return { ...fault, texts: {}, fields: [{ path: `body.${place}`, message }] };
};

const knownText = (fault: NonNullable<FormFault>, path: string): string | undefined =>
  fault.texts?.[path] ?? (fault.code === 'INVALID_REQUEST' ? words[path] : undefined);

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
const for_programs =
  /\b(?:body|query|params|headers?|request|route|method|Bearer|JSON|API)\b|\/api\/|[A-Z]+-Key/i;
const sentence = (text: string): string =>
  for_programs.test(text)
    ? 'That did not work; load the page again and try once more.'
    : `${capital(text)}${/[.!?]$/.test(text) ? '' : '.'}`;

/** Returns the problem with a field, by its name in the body. Undefined if there is no problem. */
export const problemOf = (fault: FormFault, name: string): string | undefined => {
  const path = `body.${name}`;
  const field = fault?.fields?.find((one) => one.path === path || one.path.startsWith(`${path}.`));
  if (fault === null || field === undefined) return undefined;
  return knownText(fault, field.path) ?? sentence(field.message);
};

/** Returns the fault in words for people. */
export const faultText = (fault: NonNullable<FormFault>): string => {
  const first = fault.fields?.[0];
  const known = first === undefined ? undefined : knownText(fault, first.path);
  const text = known ?? fault.texts?.[fault.code] ?? words[fault.code];
  if (text !== undefined) return text;
  return sentence(first?.message ?? fault.error);
};

/** Shown above a form: the problem with the form as a whole. */
export const FormProblem = ({ fault }: { fault: FormFault }) =>
  fault === null ? null : (
    <p class="problem" role="alert">
      {faultText(fault)}
    </p>
  );

interface FieldParts extends Omit<JSX.IntrinsicElements['input'], 'name' | 'label' | 'value'> {
  readonly name: string;
  readonly label: string;
  readonly value?: string | undefined;
  /** A sentence below the field. */
  readonly hint?: ComponentChildren;
  readonly fault?: FormFault;
}

/** Returns the attributes that tie a field to its hint and its problem. */
const described = (name: string, problem: string | undefined, hint: unknown) => {
  const ids = [problem && `${name}-problem`, hint && `${name}-hint`].filter(Boolean);
  return {
    id: name,
    name,
    'aria-invalid': problem === undefined ? undefined : ('true' as const),
    'aria-describedby': ids.length === 0 ? undefined : ids.join(' '),
    autofocus: problem !== undefined,
  };
};

const Around = ({
  name,
  label,
  problem,
  hint,
  children,
}: {
  name: string;
  label: string;
  problem: string | undefined;
  hint: ComponentChildren;
  children: ComponentChildren;
}) => (
  <div class="field">
    <label for={name}>{label}</label>
    {children}
    {problem !== undefined && (
      <p class="problem" id={`${name}-problem`}>
        {problem}
      </p>
    )}
    {hint !== undefined && (
      <p class="soft" id={`${name}-hint`}>
        {hint}
      </p>
    )}
  </div>
);

export const Field = ({ name, label, hint, fault = null, ...input }: FieldParts) => {
  const problem = problemOf(fault, name);
  return (
    <Around name={name} label={label} problem={problem} hint={hint}>
      <input type="text" {...(input as object)} {...described(name, problem, hint)} />
    </Around>
  );
};

export const TextArea = ({
  name,
  label,
  hint,
  fault = null,
  value,
  ...input
}: Omit<JSX.IntrinsicElements['textarea'], 'name' | 'label' | 'value'> &
  Pick<FieldParts, 'name' | 'label' | 'value' | 'hint' | 'fault'>) => {
  const problem = problemOf(fault, name);
  return (
    <Around name={name} label={label} problem={problem} hint={hint}>
      <textarea rows={4} {...input} {...described(name, problem, hint)}>
        {value}
      </textarea>
    </Around>
  );
};

export const Select = ({
  name,
  label,
  hint,
  fault = null,
  value,
  options,
}: Pick<FieldParts, 'name' | 'label' | 'value' | 'hint' | 'fault'> & {
  /** Each value with the label that is shown for it. */
  options: readonly (readonly [value: string, label: string])[];
}) => {
  const problem = problemOf(fault, name);
  return (
    <Around name={name} label={label} problem={problem} hint={hint}>
      <select {...described(name, problem, hint)}>
        {options.map(([one, shown]) => (
          <option key={one} value={one} selected={one === (value ?? '')}>
            {shown}
          </option>
        ))}
      </select>
    </Around>
  );
};

/** Selects agents of people here or imported agents. */
export const WhoseSelect = ({ value }: { value: string | undefined }) => (
  <Select
    name="kind"
    label="Whose"
    value={value ?? 'agent'}
    options={[
      ['agent', 'Linked agents'],
      ['imported', 'Imported agents'],
    ]}
  />
);

/** Shows the success message of a form that redirected here with `?done=word`. */
export const Done = ({
  word,
  texts,
}: {
  word: string | undefined;
  texts: Readonly<Record<string, string>>;
}) => {
  const text = word !== undefined && Object.hasOwn(texts, word) ? texts[word] : undefined;
  return text === undefined ? null : (
    <p class="done" role="status">
      {text}
    </p>
  );
};
