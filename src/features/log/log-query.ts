import type { Caller } from '../../http/caller.js';
import { type Fault, isFault } from '../../kit/fault.js';
import type { Filter, TopicRef } from '../../socket/frames.js';
import { type FilterContext, readFilter } from '../events/filter.js';
import { resolveTopic } from '../events/topics.js';

/** The part of the log that a caller wants: topics, and one filter for all of them. */

export interface LogQuery {
  /** The topics from `resolveTopic`, each with the filter. */
  readonly refs: readonly TopicRef[];
  readonly topics: ReadonlySet<string>;
  /** Null if every event passes. */
  readonly filter: Filter | null;
}

interface Given {
  readonly labels: readonly string[];
  readonly filter: unknown;
}

/** Reads the topics and the filter. Refuses them if this caller may not have them. */
export const readLogQuery = (
  { labels, filter: given }: Given,
  { caller, ...context }: FilterContext & { readonly caller: Caller },
): LogQuery | Fault => {
  const filter = readFilter(given, context);
  if (isFault(filter)) return filter;
  const refs = new Map<string, TopicRef>();
  for (const label of labels) {
    const ref = resolveTopic(label, caller, context.pillars);
    if (isFault(ref)) return ref;
    refs.set(ref.topic, { ...ref, ...(filter && { filter }) });
  }
  return { refs: [...refs.values()], topics: new Set(refs.keys()), filter };
};
