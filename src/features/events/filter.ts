import { type Static, Type } from '@sinclair/typebox';
import { type Fault, type FaultField, refuse } from '../../kit/fault.js';
import { textEnum, uuid_schema } from '../../kit/http/openapi.js';
import { compileCheck, sayFirst } from '../../kit/http/validation.js';
import { type Filter, type Publication, ws_faults } from '../../kit/ws/frames.js';
import { isCategory, listCategories, model_families, type Pillar } from '../taxonomy/index.js';
import { event_names } from './catalogue.js';
import { type LogEntry, readData } from './log-entry.js';

/**
 * What a client wants of the log: events of these names, on these questions and categories, of
 * predictions by these model families, with at least this confidence. Sockets, streams, pages and
 * webhooks have the same members with the same meaning. An event that has no question, category,
 * model family or confidence does not pass a filter that asks for one. Null: everything passes.
 */
export interface FilterMembers {
  readonly events: readonly string[] | null;
  readonly question_ids: readonly string[] | null;
  readonly categories: readonly string[] | null;
  readonly model_families: readonly string[] | null;
  /** A percentage. */
  readonly min_confidence: number | null;
}

/** Filters that let the same pass are equal, however they are written. */
export type EventFilter = Filter & FilterMembers;

const names = Type.Array(Type.String({ maxLength: 60 }), { minItems: 1, maxItems: 20 });
const family = textEnum(model_families);
const family_list = Type.Array(family, { minItems: 1, maxItems: 50 });

/** The members of a filter on the wire, but for the names of events. */
export const filter_members = {
  question_ids: Type.Optional(Type.Array(uuid_schema, { minItems: 1, maxItems: 100 })),
  categories: Type.Optional(
    Type.Array(Type.String({ maxLength: 60 }), { minItems: 1, maxItems: 50 }),
  ),
  model_family: Type.Optional(Type.Union([family, family_list])),
  min_confidence: Type.Optional(Type.Number({ minimum: 0, maximum: 100 })),
};

/** The same as the service tells them. */
export const shown_filter_members = { ...filter_members, model_family: Type.Optional(family_list) };

/** All members, as keys of a query. */
export const filter_query = { events: Type.Optional(names), ...shown_filter_members };

const filter_schema = Type.Object(
  { events: Type.Optional(names), ...filter_members },
  { additionalProperties: false },
);
const checkFilter = compileCheck(filter_schema, 'filter');

type Given = Static<typeof filter_schema>;

export interface FilterAsk {
  readonly pillars: readonly Pillar[];
  /** Where the filter was sent; refusals name it. */
  readonly path: 'filter' | 'query' | 'body.filter';
}

const refuseField = (path: string, message: string): Fault => {
  const fields: readonly FaultField[] = [{ path, message }];
  return refuse(ws_faults.INVALID_FILTER, { message: `${path}: ${message}`, fields });
};

const sortNames = (given: readonly string[] | undefined): readonly string[] | null =>
  given === undefined ? null : [...new Set(given)].sort();

/** As in a prediction, a fraction between 0 and 1 is a share of 100. */
const readConfidence = (given: number | undefined, path: string): number | Fault | null => {
  if (given === undefined) return null;
  const percent = given > 0 && given < 1 ? Math.round(given * 100) : given;
  return Number.isInteger(percent)
    ? percent
    : refuseField(`${path}.min_confidence`, 'Send a whole number from 0 to 100.');
};

const isOn = (list: readonly unknown[] | null, value: unknown): boolean =>
  list === null || list.includes(value);

/** In memory; `passesSql` means the same. */
export const passesFilter = (wanted: FilterMembers, entry: LogEntry): boolean => {
  const { events, question_ids, categories, model_families, min_confidence } = wanted;
  if (!isOn(events, entry.event)) return false;
  if (!isOn(question_ids, entry.question_id) || !isOn(categories, entry.category)) return false;
  if (model_families === null && min_confidence === null) return true;
  const { model_family, confidence } = readData(entry);
  if (!isOn(model_families, model_family)) return false;
  return (
    min_confidence === null || (typeof confidence === 'number' && confidence >= min_confidence)
  );
};

/** A filter as its client is told of it; null for one that lets everything pass. */
export const showFilter = (wanted: FilterMembers): Readonly<Record<string, unknown>> | null => {
  const { events, question_ids, categories, model_families, min_confidence } = wanted;
  const shown = {
    ...(events !== null && { events }),
    ...(question_ids !== null && { question_ids }),
    ...(categories !== null && { categories }),
    ...(model_families !== null && { model_family: model_families }),
    ...(min_confidence !== null && { min_confidence }),
  };
  return Object.keys(shown).length === 0 ? null : shown;
};

/** What is named and does not exist. */
const findUnknown = ({ events, categories }: Given, { pillars, path }: FilterAsk): Fault | null => {
  const event = events?.find((name) => !event_names.includes(name));
  if (event !== undefined) {
    const message = `There is no event "${event}"; there are ${event_names.join(', ')}.`;
    return refuseField(`${path}.events`, message);
  }
  const category = categories?.find((name) => !isCategory(pillars, name));
  if (category === undefined) return null;
  const message = `"${category}" is not a category; use one of ${listCategories(pillars)}.`;
  return refuseField(`${path}.categories`, message);
};

/** The filter that a client asks for; null for one that lets everything pass. */
export const readFilter = (given: unknown, ask: FilterAsk): EventFilter | Fault | null => {
  const fields = checkFilter(given);
  if (fields !== null) {
    return refuse(ws_faults.INVALID_FILTER, { message: sayFirst('filter', fields), fields });
  }
  const filter = given as Given;
  const unknown = findUnknown(filter, ask);
  if (unknown !== null) return unknown;
  const min_confidence = readConfidence(filter.min_confidence, ask.path);
  if (typeof min_confidence === 'object' && min_confidence !== null) return min_confidence;
  const { model_family } = filter;
  const wanted: FilterMembers = {
    events: sortNames(filter.events),
    question_ids: sortNames(filter.question_ids?.map((id) => id.toLowerCase())),
    categories: sortNames(filter.categories),
    model_families: sortNames(typeof model_family === 'string' ? [model_family] : model_family),
    min_confidence,
  };
  const shown = showFilter(wanted);
  if (shown === null) return null;
  const matches = ({ about }: Publication) => passesFilter(wanted, about as LogEntry);
  return { ...wanted, key: JSON.stringify(shown), shown, matches };
};
