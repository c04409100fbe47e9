import { Type } from '@sinclair/typebox';
import { type Fault, type FaultField, refuse } from '../../kit/fault.js';
import { compileCheck, sayFirst } from '../../kit/http/validate.js';
import { type Filter, type Publication, ws_faults } from '../../kit/ws/frames.js';
import { event_names } from './catalogue.js';
import { type LogEntry, readData } from './log-entry.js';

/**
 * What a client wants of a topic: events of these names, of predictions by these model families,
 * with at least this confidence. An event that has no model family or no confidence does not pass a
 * filter that asks for one. Filters that let the same pass are equal, however they are written.
 */
export interface EventFilter extends Filter {
  readonly events: readonly string[] | null;
  readonly model_families: readonly string[] | null;
  /** A percentage. */
  readonly min_confidence: number | null;
}

const family_pattern = '^[a-z0-9_-]{1,40}$';
const most_names = 20;

const filter_schema = Type.Object(
  {
    events: Type.Optional(
      Type.Array(Type.String({ maxLength: 60 }), { minItems: 1, maxItems: most_names }),
    ),
    model_family: Type.Optional(
      Type.Union([
        Type.String({ pattern: family_pattern }),
        Type.Array(Type.String({ pattern: family_pattern }), {
          minItems: 1,
          maxItems: most_names,
        }),
      ]),
    ),
    min_confidence: Type.Optional(Type.Number({ minimum: 0, maximum: 100 })),
  },
  { additionalProperties: false },
);
const checkFilter = compileCheck(filter_schema, 'filter');

interface Given {
  readonly events?: readonly string[];
  readonly model_family?: string | readonly string[];
  readonly min_confidence?: number;
}

const refuseField = (path: string, message: string): Fault => {
  const fields: readonly FaultField[] = [{ path, message }];
  return refuse(ws_faults.INVALID_FILTER, { message: `${path}: ${message}`, fields });
};

const sortNames = (names: readonly string[] | undefined): readonly string[] | null =>
  names === undefined ? null : [...new Set(names)].sort();

/** As in a prediction, a fraction between 0 and 1 is a share of 100. */
const readConfidence = (given: number | undefined): number | Fault | null => {
  if (given === undefined) return null;
  const percent = given > 0 && given < 1 ? Math.round(given * 100) : given;
  return Number.isInteger(percent)
    ? percent
    : refuseField('filter.min_confidence', 'Send a whole number from 0 to 100.');
};

type Wanted = Pick<EventFilter, 'events' | 'model_families' | 'min_confidence'>;

export const passesFilter = (
  { events, model_families, min_confidence }: Wanted,
  entry: LogEntry,
): boolean => {
  if (events !== null && !events.includes(entry.event)) return false;
  if (model_families === null && min_confidence === null) return true;
  const { model_family, confidence } = readData(entry);
  if (model_families !== null && !model_families.includes(model_family as string)) return false;
  return (
    min_confidence === null ||
    (Number.isInteger(confidence) && (confidence as number) >= min_confidence)
  );
};

const makeFilter = (wanted: Wanted): EventFilter => {
  const { events, model_families, min_confidence } = wanted;
  return {
    ...wanted,
    key: JSON.stringify([events, model_families, min_confidence]),
    shown: {
      ...(events !== null && { events }),
      ...(model_families !== null && { model_family: model_families }),
      ...(min_confidence !== null && { min_confidence }),
    },
    matches: ({ about }: Publication) => passesFilter(wanted, about as LogEntry),
  };
};

/** The filter that a client asks for; null for one that lets everything pass. */
export const readFilter = (given: unknown): EventFilter | Fault | null => {
  const fields = checkFilter(given);
  if (fields !== null) {
    return refuse(ws_faults.INVALID_FILTER, { message: sayFirst('filter', fields), fields });
  }
  const { events, model_family, min_confidence } = given as Given;
  const unknown_name = events?.find((name) => !event_names.includes(name));
  if (unknown_name !== undefined) {
    const known = event_names.join(', ');
    return refuseField('filter.events', `There is no event "${unknown_name}"; there are ${known}.`);
  }
  const least = readConfidence(min_confidence);
  if (typeof least === 'object' && least !== null) return least;
  const families = typeof model_family === 'string' ? [model_family] : model_family;
  if (events === undefined && families === undefined && least === null) return null;
  return makeFilter({
    events: sortNames(events),
    model_families: sortNames(families),
    min_confidence: least,
  });
};
