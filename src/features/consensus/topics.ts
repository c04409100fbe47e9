import { isId } from '../../kit/ids.js';
import type { StateSource } from '../../kit/ws/states.js';
import type { LiveConsensus } from './live.js';

const prefix = 'consensus:';

export const consensusTopic = (question_id: string): string => prefix + question_id;

/**
 * `consensus:{id}`: the consensus of a question as a state topic. Its version is its offset, so it
 * is the same in every process and after a restart; one that is not published shows nothing.
 */
export const makeConsensusTopics = (live: LiveConsensus): StateSource => ({
  resolve: (label) => {
    const is_one = label.startsWith(prefix) && isId(label.slice(prefix.length));
    return is_one ? { topic: label, label } : null;
  },
  read: async (topic) => {
    const data = await live.find(topic.slice(prefix.length));
    return data === undefined ? null : { version: data.offset, data };
  },
});
