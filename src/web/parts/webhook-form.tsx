import { type Static, Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import type { FaultAnswer } from '../../http/inner-call.js';
import {
  atFields,
  Field,
  type FormFault,
  FormProblem,
  problemOf,
  Select,
  TextArea,
} from './forms.js';

/** The form of a webhook: its address, its events and its filters. */

type Hook = Operations['getWebhook']['returns'];
export type Pillars = Operations['getTaxonomy']['returns'];

/** A single ticked box arrives as a string, and several as a list. */
const boxes = Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())]));
const text = Type.Optional(Type.String());
export const webhook_form = Type.Object({
  url: text,
  events: boxes,
  categories: boxes,
  families: boxes,
  question_ids: text,
  min_confidence: text,
  signature: text,
  order: text,
});
export type WebhookForm = Static<typeof webhook_form>;

const listOf = (given: string | readonly string[] | undefined): readonly string[] =>
  given === undefined ? [] : typeof given === 'string' ? [given] : given;

const uuid = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i;

/** Converts the form to a request body. A question may be given by its id or by its address. */
export const webhookBody = (form: WebhookForm) => {
  const questions = (form.question_ids ?? '').split(/\s+/).filter((line) => line !== '');
  const [categories, model_family] = [listOf(form.categories), listOf(form.families)];
  const least = (form.min_confidence ?? '').trim();
  const filter = {
    ...(questions.length > 0 && {
      question_ids: questions.map((one) => uuid.exec(one)?.[0] ?? one),
    }),
    ...(categories.length > 0 && { categories }),
    ...(model_family.length > 0 && { model_family }),
    ...(least !== '' && { min_confidence: Number(least) }),
  };
  const is_all = Object.keys(filter).length === 0;
  return {
    url: (form.url ?? '').trim(),
    events: listOf(form.events),
    filter: is_all ? null : (filter as NonNullable<Operations['createWebhook']['body']['filter']>),
    ...(form.signature !== undefined && { signature: form.signature as Hook['signature'] }),
    ...(form.order !== undefined && { order: form.order as Hook['order'] }),
  };
};

/** Fills the form with the values of a stored webhook. */
export const formOfWebhook = ({ url, events, filter, signature, order }: Hook): WebhookForm => ({
  signature,
  order,
  url,
  events: [...events],
  question_ids: (filter?.question_ids ?? []).join('\n'),
  categories: [...(filter?.categories ?? [])],
  families: [...listOf(filter?.model_family)],
  min_confidence: filter?.min_confidence === undefined ? '' : String(filter.min_confidence),
});

/** The form field for each member of the filter. */
const filter_fields = {
  'filter.question_ids': 'question_ids',
  'filter.categories': 'categories',
  'filter.model_family': 'families',
  'filter.min_confidence': 'min_confidence',
};

export const webhookFault = (fault: FaultAnswer): FaultAnswer =>
  atFields(fault, { members: filter_fields });

const signatures = [
  ['standard', 'Secret (Standard Webhooks)'],
  ['rfc9421', 'Secret and HTTP message signature (RFC 9421)'],
] as const;

const orders = [
  ['none', 'As fast as possible'],
  ['question', 'One after another for each question'],
] as const;

const Boxes = ({
  name,
  values,
  chosen,
}: {
  name: string;
  values: readonly (readonly [value: string, label: string])[];
  chosen: readonly string[];
}) => (
  <div class="boxes">
    {values.map(([value, label]) => (
      <label key={value}>
        <input type="checkbox" name={name} value={value} checked={chosen.includes(value)} /> {label}
      </label>
    ))}
  </div>
);

export const WebhookFields = ({
  form,
  events,
  pillars,
  families,
  fault,
}: {
  form: WebhookForm;
  events: readonly string[];
  pillars: Pillars;
  families: readonly string[];
  fault: FormFault;
}) => {
  const no_event = problemOf(fault, 'events');
  const is_narrowed = webhookBody(form).filter !== null;
  return (
    <>
      {fault?.fields === undefined && <FormProblem fault={fault} />}
      <Field
        name="url"
        label="Address"
        type="url"
        inputMode="url"
        autoComplete="off"
        placeholder="https://example.org/hooks/forum"
        required
        hint="A public address that begins with https://."
        value={form.url}
        fault={fault}
      />
      <fieldset
        id="events"
        tabIndex={no_event === undefined ? undefined : -1}
        autofocus={no_event !== undefined}
        aria-describedby={no_event === undefined ? undefined : 'events-problem'}
      >
        <legend>Events</legend>
        {no_event !== undefined && (
          <p class="problem" id="events-problem">
            {no_event}
          </p>
        )}
        <Boxes
          name="events"
          values={events.map((one) => [one, one])}
          chosen={listOf(form.events)}
        />
        <p class="soft">
          <a href="/docs/events">Event descriptions</a>
        </p>
      </fieldset>
      <Select
        name="signature"
        label="Signature"
        value={form.signature}
        options={signatures}
        fault={fault}
      />
      <Select name="order" label="Order" value={form.order} options={orders} fault={fault} />
      <details
        open={
          is_narrowed ||
          Object.values(filter_fields).some((name) => problemOf(fault, name) !== undefined)
        }
      >
        <summary>Filter (optional)</summary>
        <p class="soft">
          An event must match every filter that you set. If you filter by confidence, for example,
          events without a confidence do not match.
        </p>
        <TextArea
          name="question_ids"
          label="Questions"
          rows={3}
          hint="Addresses or ids, one per line. Leave empty for all questions."
          value={form.question_ids}
          fault={fault}
        />
        <fieldset>
          <legend>Categories</legend>
          <Boxes
            name="categories"
            values={pillars.map(({ slug, name }) => [slug, name])}
            chosen={listOf(form.categories)}
          />
        </fieldset>
        <fieldset>
          <legend>Model families</legend>
          <Boxes
            name="families"
            values={families.map((one) => [one, one])}
            chosen={listOf(form.families)}
          />
        </fieldset>
        <Field
          name="min_confidence"
          label="Minimum confidence (%)"
          type="number"
          min="0"
          max="100"
          step="any"
          value={form.min_confidence}
          fault={fault}
        />
      </details>
    </>
  );
};
