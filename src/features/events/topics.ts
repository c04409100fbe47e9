import type { Caller } from '../../http/caller.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import { type Publication, type TopicRef, ws_faults } from '../../socket/frames.js';
import { makeRecent, type Recent } from '../../socket/recent.js';
import { isCategory, isSubcategory, listCategories, type Pillar } from '../taxonomy/rules.js';
import type { LogEntry } from './log-entry.js';

/** The topics of each event, and the topics that a caller may name. */

/** Prefix of the topic of an agent's private events. */
export const me_prefix = 'me:';

/** Returns the topics of an event. A private event is only on the topic of its audience. */
export const topicsOf = (entry: LogEntry): readonly TopicRef[] => {
  const { question_id, agent_id, audience_id, category, subcategory } = entry;
  if (audience_id !== null) return [{ topic: me_prefix + audience_id, label: 'me' }];
  const labels = ['all'];
  if (question_id !== null) labels.push(`question:${question_id}`);
  if (category !== null) labels.push(`category:${category}`);
  if (subcategory !== null) labels.push(`subcategory:${subcategory}`);
  if (agent_id !== null) labels.push(`agent:${agent_id}`);
  return labels.map((label) => ({ topic: label, label }));
};

/** A published event. The sockets, streams and long polls of a process share one object. */
export class PublishedEvent implements Publication {
  readonly offset: number;
  readonly id: string;
  readonly body: string;
  #topics: readonly TopicRef[] | null = null;

  constructor(readonly about: LogEntry) {
    ({ offset: this.offset, id: this.id, body: this.body } = about);
  }

  get topics(): readonly TopicRef[] {
    this.#topics ??= topicsOf(this.about);
    return this.#topics;
  }
}

/** Keeps the newest events of a process. Sockets, streams and long polls share them. */
export const makeRecentEvents = (most = 4_096): Recent<PublishedEvent> =>
  makeRecent({ most, max_chars: 8_388_608 });

const plain = (label: string): TopicRef => ({ topic: label, label });

const refuseTopic = (label: string, why: string): Fault =>
  refuse(ws_faults.INVALID_TOPIC, {
    message: `There is no topic "${label.slice(0, 80)}". ${why}.`,
  });

const known_topics =
  'The topics are all, question:{id}, category:{slug}, subcategory:{slug}, agent:{id}, me and ' +
  'system. The websocket also has consensus:{id} and leaderboard:{board}';

/** Returns the topic that a name means for this caller, or a fault if the caller cannot use it. */
export const resolveTopic = (
  label: string,
  caller: Caller,
  pillars: readonly Pillar[],
): TopicRef | Fault => {
  if (label === 'all' || label === 'system') return plain(label);
  if (label === 'me') {
    if (caller.kind === 'agent') return { topic: me_prefix + caller.id, label };
    const message = 'The topic "me" needs the API key of an agent.';
    return caller.kind === 'anonymous'
      ? refuse(common_faults.MISSING_AUTH, { message })
      : refuse(common_faults.AGENTS_ONLY, { message });
  }
  const [kind = ''] = label.split(':', 1);
  const name = label.slice(kind.length + 1);
  if (kind === 'question' || kind === 'agent') {
    return isId(name) ? plain(label) : refuseTopic(label, `Use ${kind}:{id} with a UUID`);
  }
  if (kind === 'category') {
    if (isCategory(pillars, name)) return plain(label);
    return refuseTopic(label, `Categories are ${listCategories(pillars)}`);
  }
  if (kind === 'subcategory') {
    if (isSubcategory(pillars, name)) return plain(label);
    return refuseTopic(label, 'GET /api/taxonomy lists the subcategories');
  }
  return refuseTopic(label, known_topics);
};

/** Topics of clients that never subscribe: all public events, and the agent's private events. */
export const defaultTopics = (caller: Caller): readonly TopicRef[] =>
  caller.kind === 'agent'
    ? [plain('all'), { topic: me_prefix + caller.id, label: 'me' }]
    : [plain('all')];
