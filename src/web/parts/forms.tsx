import type { ComponentChildren, JSX } from 'preact';
import type { FaultAnswer } from '../../http/inner-call.js';

/** Form fields that show their own problems. */

/** The fault with which the API rejected a form. Null if it was not sent or was accepted. */
export type FormFault = FaultAnswer | null;

type Names = Readonly<Record<string, string>>;

/**
 * Assigns a fault to fields of the form. `codes` maps error codes to fields. `members` maps members
 * of the body to fields with a different name. The first matching member is used.
 */
export const atFields = (
  fault: FaultAnswer,
  { codes = {}, members = {} }: { readonly codes?: Names; readonly members?: Names },
): FaultAnswer => {
  const field = codes[fault.code];
  const fields =
    field === undefined ? fault.fields : [{ path: `body.${field}`, message: fault.error }];
  if (fields === undefined) return fault;
  const nameOf = (path: string): string => {
    const member = Object.keys(members).find((one) => `${path}.`.startsWith(`body.${one}.`));
    return member === undefined ? path : `body.${members[member]}`;
  };
  return { ...fault, fields: fields.map((one) => ({ ...one, path: nameOf(one.path) })) };
};

/** The API writes the problem of a field without a subject: "must be a number". */
const asSentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

/** Returns the problem with a field, by its name in the body. Undefined if there is no problem. */
export const problemOf = (fault: FormFault, name: string): string | undefined => {
  const field = fault?.fields?.find(({ path }) => `${path}.`.startsWith(`body.${name}.`));
  return field === undefined ? undefined : asSentence(field.message);
};

/** Returns the fault's sentence, or its first problem with a field. */
export const faultText = ({ fields, error }: FaultAnswer): string =>
  asSentence(fields?.[0]?.message ?? error);

/** Like `faultText`, for a page without a form: names the part of the address that is wrong. */
export const addressText = ({ fields, error }: FaultAnswer): string => {
  const first = fields?.[0];
  if (first === undefined) return asSentence(error);
  return `Invalid ${first.path.replace(/^\w+\./, '')}: ${first.message.replace(/\.$/, '')}.`;
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

/** A choice between linked agents and imported agents, and both together if `has_all` is set. */
export const AgentKindSelect = ({
  value = 'agent',
  has_all = false,
}: {
  value: string | undefined;
  has_all?: boolean;
}) => (
  <Select
    name="kind"
    label="Show"
    value={value}
    options={[
      ...(has_all ? ([['all', 'All agents']] as const) : []),
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
