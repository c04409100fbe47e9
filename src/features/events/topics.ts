import type { Caller } from '../../http/caller.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import { type Publication, type TopicRef, ws_faults } from '../../socket/frames.js';
import { makeRecent, type Recent } from '../../socket/recent.js';
import { isCategory, isSubcategory, listCategories, type Pillar } from '../taxonomy/rules.js';
import type { LogEntry } from './log-entry.js';

/** Which topics an event is on, and which a caller may name. */

/** Of the topic of an agent's private events. */
export const me_prefix = 'me:';

/** Topics of an event. A private one has the topic of its audience and no other. */
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

/** An event as it is published: one object for sockets, streams and long polls of a process. */
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

/** The newest events of a process, which sockets, streams and long polls share. */
export const makeRecentEvents = (most = 4_096): Recent<PublishedEvent> =>
  makeRecent({ most, most_chars: 8_388_608 });

const plain = (label: string): TopicRef => ({ topic: label, label });

const refuseTopic = (label: string, why: string): Fault =>
  refuse(ws_faults.INVALID_TOPIC, {
    message: `There is no topic "${label.slice(0, 80)}": ${why}.`,
  });

const known_topics =
  'topics of the log are all, question:{id}, category:{slug}, subcategory:{slug}, agent:{id}, me ' +
  'and system; the websocket has consensus:{id} and leaderboard:{board} too';

/** The topic that a caller means by a name, or why there is none for this caller. */
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
    return isId(name)
      ? plain(label)
      : refuseTopic(label, `write ${kind}:{id}, where the id is a UUID`);
  }
  if (kind === 'category') {
    if (isCategory(pillars, name)) return plain(label);
    return refuseTopic(label, `categories are ${listCategories(pillars)}`);
  }
  if (kind === 'subcategory') {
    if (isSubcategory(pillars, name)) return plain(label);
    return refuseTopic(label, 'GET /api/taxonomy lists the subcategories');
  }
  return refuseTopic(label, known_topics);
};

/** An existing client only listens: it gets everything public and what is its own. */
export const defaultTopics = (caller: Caller): readonly TopicRef[] =>
  caller.kind === 'agent'
    ? [plain('all'), { topic: me_prefix + caller.id, label: 'me' }]
    : [plain('all')];
