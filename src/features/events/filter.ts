import { type Static, Type } from '@sinclair/typebox';
import { textEnum, uuid_schema } from '../../http/schemas.js';
import { compileCheck } from '../../http/validation.js';
import { type Fault, type FaultField, refuse, sayFirst } from '../../kit/fault.js';
import { type Filter, type Publication, ws_faults } from '../../socket/frames.js';
import { model_families } from '../taxonomy/model-family.js';
import { isCategory, listCategories, type Pillar } from '../taxonomy/rules.js';
import { event_names } from './catalogue.js';
import { type LogEntry, readData } from './log-entry.js';

const names = Type.Array(Type.String({ maxLength: 60 }), {
  minItems: 1,
  maxItems: 20,
  description: 'Names of events, such as `prediction.placed`.',
});
const family = textEnum(model_families);
const family_list = Type.Array(family, { minItems: 1, maxItems: 50 });

/** The members of a filter in a request, except for the names of events. */
export const filter_members = {
  question_ids: Type.Optional(Type.Array(uuid_schema, { minItems: 1, maxItems: 100 })),
  categories: Type.Optional(
    Type.Array(Type.String({ maxLength: 60 }), { minItems: 1, maxItems: 50 }),
  ),
  model_family: Type.Optional(Type.Union([family, family_list])),
  min_confidence: Type.Optional(Type.Number({ minimum: 0, maximum: 100 })),
};

/** The same members in a response, where `model_family` is always a list. */
export const shown_filter_members = { ...filter_members, model_family: Type.Optional(family_list) };

export const filter_query = { events: Type.Optional(names), ...shown_filter_members };

const shown_schema = Type.Object(filter_query);

/**
 * Selects the events that a client wants: by event name, by question and category, by the model
 * families of predictions, and by minimum confidence. Sockets, streams, pages and webhooks use the
 * same members with the same meaning. An event without a question, category, model family or
 * confidence does not pass a filter on that member. A missing member excludes nothing.
 */
export type FilterMembers = Readonly<Static<typeof shown_schema>>;

/** Filters that let the same events pass have the same `key`, however they are written. */
export interface EventFilter extends Filter {
  readonly shown: FilterMembers;
}

const filter_schema = Type.Object(
  { events: Type.Optional(names), ...filter_members },
  { additionalProperties: false },
);
const checkFilter = compileCheck(filter_schema, 'filter');

type Given = Static<typeof filter_schema>;

export interface FilterContext {
  readonly pillars: readonly Pillar[];
  /** The place of the filter in the request, for error messages. */
  readonly path: 'filter' | 'query' | 'body.filter';
}

const refuseField = (path: string, message: string): Fault => {
  const fields: readonly FaultField[] = [{ path, message }];
  return refuse(ws_faults.INVALID_FILTER, { message: `${path}: ${message}`, fields });
};

/**
 * Refuses unknown members that look like a filter or a position in the log; null for an empty list.
 */
export const refuseUnknown = (what: string, fields: readonly FaultField[]): Fault | null =>
  fields.length === 0
    ? null
    : refuse(ws_faults.INVALID_FILTER, { message: sayFirst(what, fields), fields });

const sortNames = <T extends string>(given: readonly T[]): T[] => [...new Set(given)].sort();

const isOn = (list: readonly unknown[] | undefined, value: unknown): boolean =>
  list === undefined || list.includes(value);

/** Checks an event in memory, by the same rules as `passesSql`. */
export const passesFilter = (wanted: FilterMembers, entry: LogEntry): boolean => {
  const { events, question_ids, categories, model_family, min_confidence } = wanted;
  if (!isOn(events, entry.event)) return false;
  if (!isOn(question_ids, entry.question_id) || !isOn(categories, entry.category)) return false;
  if (model_family === undefined && min_confidence === undefined) return true;
  const data = readData(entry);
  if (!isOn(model_family, data['model_family'])) return false;
  const { confidence } = data;
  if (min_confidence === undefined) return true;
  return typeof confidence === 'number' && confidence >= min_confidence;
};

const findUnknown = (
  { events, categories }: Given,
  { pillars, path }: FilterContext,
): Fault | null => {
  const event = events?.find((name) => !event_names.includes(name));
  if (event !== undefined) {
    const message = `There is no event "${event}". Use one of ${event_names.join(', ')}.`;
    return refuseField(`${path}.events`, message);
  }
  const category = categories?.find((name) => !isCategory(pillars, name));
  if (category === undefined) return null;
  const message = `"${category}" is not a category. Use one of ${listCategories(pillars)}.`;
  return refuseField(`${path}.categories`, message);
};

/** Reads the filter of a client; null if it lets everything pass. */
export const readFilter = (given: unknown, context: FilterContext): EventFilter | Fault | null => {
  const fields = checkFilter(given);
  if (fields !== null) {
    return refuse(ws_faults.INVALID_FILTER, { message: sayFirst('filter', fields), fields });
  }
  const filter = given as Given;
  const unknown = findUnknown(filter, context);
  if (unknown !== null) return unknown;
  const { events, question_ids, categories, model_family, min_confidence } = filter;
  const families = typeof model_family === 'string' ? [model_family] : model_family;
  const shown: FilterMembers = {
    ...(events && { events: sortNames(events) }),
    ...(question_ids && { question_ids: sortNames(question_ids.map((id) => id.toLowerCase())) }),
    ...(categories && { categories: sortNames(categories) }),
    ...(families && { model_family: sortNames(families) }),
    ...(min_confidence !== undefined && { min_confidence }),
  };
  if (Object.keys(shown).length === 0) return null;
  const matches = ({ about }: Publication) => passesFilter(shown, about as LogEntry);
  return { key: JSON.stringify(shown), shown, matches };
};
