import { common_faults, type Fault, type FaultDef, refuse } from '../../kit/fault.js';
import { call_errors } from '../../kit/guarded-client/call-errors.js';
import type { TargetProblemCode } from '../../kit/guarded-client/target.js';
import { sayFirst } from '../../kit/http/validation.js';
import { event_names, type FilterMembers, readFilter } from '../events/index.js';
import type { Pillar } from '../taxonomy/index.js';
import type { Webhooks } from './parts.js';
import { findNarrowing, uniqueNames, unknownNames } from './rules.js';
import { type NarrowingBody, webhook_faults } from './schema.js';

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

/** A fault for members that would have narrowed what is delivered, had they been known. */
export const refuseNarrowing = (body: object): Fault | null => {
  const fields = findNarrowing(body);
  if (fields.length === 0) return null;
  return refuse(common_faults.INVALID_REQUEST, { message: sayFirst('body', fields), fields });
};

/** What a body narrows the events to; null lets all pass, undefined where it says nothing. */
export const readNarrowing = (
  { filter, scope_question_id }: NarrowingBody,
  pillars: readonly Pillar[],
): FilterMembers | null | undefined | Fault => {
  const ask = { pillars, path: 'body.filter' } as const;
  if (scope_question_id == null) return filter == null ? filter : readFilter(filter, ask);
  if (filter?.question_ids === undefined) {
    return readFilter({ ...filter, question_ids: [scope_question_id] }, ask);
  }
  const path = 'body.scope_question_id';
  const fields = [{ path, message: 'means filter.question_ids; send one of the two' }];
  return refuse(common_faults.INVALID_REQUEST, { message: sayFirst('body', fields), fields });
};
