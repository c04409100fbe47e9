import { common_faults, type Fault, type FaultDef, refuse } from '../../kit/fault.js';
import { call_errors } from '../../kit/guarded-client/call-errors.js';
import type { TargetProblemCode } from '../../kit/guarded-client/target.js';
import type { Db } from '../../kit/pg/client.js';
import { event_names } from '../events/index.js';
import type { Webhooks } from './parts.js';
import { uniqueNames, unknownNames } from './rules.js';
import { type Filter, webhook_faults } from './schema.js';
import { type FilterLists, unknownCategories } from './store.js';

/** What is checked of a webhook before it is stored or changed. */

/** The names, each once, or a fault that lists the wrong and the valid ones. */
export const checkEvents = (names: readonly string[]): string[] | Fault => {
  const unique = uniqueNames(names);
  const unknown = unknownNames(unique, event_names);
  if (unknown.length === 0) return unique;
  const named = unknown.slice(0, 5).map((name) => `"${name.slice(0, 60)}"`);
  return refuse(webhook_faults.INVALID_EVENT, {
    message: `Not an event: ${named.join(', ')}. Valid are: ${event_names.join(', ')}.`,
    fields: [{ path: 'body.events', message: `Each one of ${event_names.join(', ')}.` }],
    extra: { valid_events: event_names },
  });
};

const url_faults: Readonly<Record<TargetProblemCode, FaultDef>> = {
  invalid_url: webhook_faults.INVALID_URL,
  https_required: webhook_faults.HTTPS_REQUIRED,
  target_refused: webhook_faults.SSRF_BLOCKED,
};

export interface CheckedUrl {
  readonly href: string;
  readonly warning: string | null;
}

const refuseUrl = (def: FaultDef, message: string): Fault =>
  refuse(def, { message, fields: [{ path: 'body.url', message }] });

/** Parses the address and looks its name up; a name that does not resolve is only a warning. */
export const checkUrl = async (url: string, { client }: Webhooks): Promise<CheckedUrl | Fault> => {
  const target = client.parse(url);
  if (target.kind === 'problem') return refuseUrl(url_faults[target.code], target.sentence);
  const vetted = await client.vet(target);
  if (vetted.kind === 'vetted') return { href: target.href, warning: null };
  const sentence = call_errors[vetted.code];
  if (vetted.code === 'address_refused') return refuseUrl(webhook_faults.SSRF_BLOCKED, sentence);
  return {
    href: target.href,
    warning: `${sentence} The webhook is stored, and the name is looked up before every attempt.`,
  };
};

const uniqueOrNull = (names: readonly string[] | undefined): readonly string[] | null =>
  names === undefined ? null : uniqueNames(names);

/** The lists of a filter, each name once; null for a filter that lets everything pass. */
export const checkFilter = async (
  db: Db,
  filter: Filter | null,
): Promise<FilterLists | null | Fault> => {
  if (filter === null) return null;
  const questions = uniqueOrNull(filter.question_ids?.map((id) => id.toLowerCase()));
  const categories = uniqueOrNull(filter.categories);
  const families = uniqueOrNull(filter.model_families);
  if (questions === null && categories === null && families === null) return null;
  const unknown = categories === null ? [] : await unknownCategories(db, categories);
  if (unknown.length === 0) return { questions, categories, families };
  const named = unknown.slice(0, 5).map((name) => `"${name.slice(0, 60)}"`);
  const message = `Not a category: ${named.join(', ')}; GET /api/taxonomy lists them.`;
  const fields = [{ path: 'body.filter.categories', message }];
  return refuse(common_faults.INVALID_REQUEST, { message, fields });
};
