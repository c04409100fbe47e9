import pLimit from 'p-limit';
import type { Client } from '#client/node.js';
import type { Terminal } from '../../boot/terminal.mjs';
import { type Screen, Stopped } from '../command.js';
import type { DemoAgent } from './agents.js';
import { discuss, revise, speak } from './history.js';
import type { DemoQuestion } from './question.js';
import { questions } from './questions.js';

/**
 * The part of the demo that imports cannot carry: forecasts of agents that belong to people,
 * revisions with reasons, comments, votes and disputes.
 */

export interface Story {
  readonly url: string;
  /** Sends no credential. */
  readonly client: Client;
  readonly admin: Client;
  /** Part of the people's addresses, and of agent names that are taken. */
  readonly run_id: string;
  readonly now: Date;
  readonly data_dir: string;
  readonly screen: Screen;
  readonly terminal: Terminal;
  readonly stop: AbortSignal | undefined;
  /** Functions that run at the end, the last one first. */
  readonly closers: (() => unknown)[];
}

/** An agent of the cast as it was registered here. */
export interface Member {
  readonly agent: DemoAgent;
  readonly name: string;
  readonly client: Client;
  readonly id: string;
  /** Index of the owner. Imported agents have a common owner, who is nobody. */
  readonly owner: number;
}

export interface Placed {
  readonly id: string;
  readonly event_id: string;
  readonly member: Member;
  readonly question: DemoQuestion;
}

/** Live agents leave out a question here and there. */
const skips = (member: number, question: number): boolean => (3 * member + question) % 7 === 0;

const parallel = 4;

/** Every live agent predicts on `open` questions, and each starts with a different question. */
export const predictLive = async (
  { now, stop }: Story,
  members: readonly Member[],
  { ids, open }: { ids: ReadonlyMap<DemoQuestion, string>; open: readonly DemoQuestion[] },
): Promise<readonly Placed[]> => {
  const placed = await Promise.all(
    members.map(async (member, index) => {
      const own: Placed[] = [];
      for (const n of open.keys()) {
        stop?.throwIfAborted();
        const question = open[(index + n) % open.length]!;
        if (skips(index, questions.indexOf(question))) continue;
        const params = { id: ids.get(question)! };
        const body = speak(member.agent, question, { now, day: 0 });
        const answer = await member.client.call('predict', { params, body });
        if (!('event_id' in answer)) throw new Stopped('An answer has no event_id.');
        own.push({ id: answer.prediction.id, event_id: answer.event_id, member, question });
      }
      return own;
    }),
  );
  return placed.flat();
};

/** Imported agents revise: a forecast can be revised only a minute after the one before it. */
export const reviseSome = async (
  { now }: Story,
  forecasts: readonly Omit<Placed, 'event_id'>[],
): Promise<number> => {
  let changed = 0;
  for (const { id, member, question } of forecasts) {
    const body = revise(member.agent, question, { now, day: 0 });
    const answer = await member.client.call('revisePrediction', { params: { pid: id }, body });
    if (answer.changed) changed += 1;
  }
  return changed;
};

export interface Said {
  readonly id: string;
  readonly by: Member;
}

export const discussAll = async (
  { stop }: Story,
  members: readonly Member[],
  ids: ReadonlyMap<DemoQuestion, string>,
): Promise<readonly Said[]> => {
  const names = members.map(({ name }) => name);
  const said: Said[] = [];
  await pLimit(parallel).map(questions, async (question, index) => {
    const id = ids.get(question)!;
    for (const remark of discuss(question, names, question.days[1] > 0 ? 4 : 1)) {
      stop?.throwIfAborted();
      const by = members[remark.by]!;
      const body = { content: remark.content };
      const { comment } = await by.client.call('createComment', { params: { id }, body });
      said.push({ id: comment.id, by });
      let parent = comment.id;
      for (const { by: n, content } of remark.answers) {
        const other = members[n]!;
        const params = { comment_id: parent };
        const reply = await other.client.call('replyToComment', { params, body: { content } });
        said.push({ id: reply.comment.id, by: other });
        // Every other thread goes deeper, and the others stay flat.
        if (index % 2 === 0) parent = reply.comment.id;
      }
    }
  });
  return said;
};

/** Agents vote on content of other owners. Returns the number of votes. */
export const voteAll = async (
  { stop }: Story,
  members: readonly Member[],
  { said, subjects }: { readonly said: readonly Said[]; readonly subjects: readonly Said[] },
): Promise<number> => {
  const votes: (() => Promise<unknown>)[] = [];
  const others = (by: Member, from: number, count: number): readonly Member[] => {
    const allowed = members.filter(({ owner }) => owner !== by.owner);
    return Array.from({ length: Math.min(count, allowed.length) }, (_, n) => {
      return allowed[(from + n) % allowed.length]!;
    });
  };
  for (const [n, { id, by }] of said.entries()) {
    for (const { client } of others(by, 7 * n, n % 3)) {
      votes.push(() => client.call('upvoteComment', { params: { id } }));
    }
  }
  for (const [n, { id, by }] of subjects.entries()) {
    for (const [m, { client }] of others(by, 5 * n, (3 * n) % 4).entries()) {
      const vote = (n + m) % 5 === 4 ? 'downvotePrediction' : 'upvotePrediction';
      votes.push(() => client.call(vote, { params: { pid: id } }));
    }
  }
  await pLimit(parallel).map(votes, (vote) => {
    stop?.throwIfAborted();
    return vote();
  });
  return votes.length;
};

/** The first dispute is rejected, the second stays open. */
export const dispute = async (
  { admin }: Story,
  ids: ReadonlyMap<DemoQuestion, string>,
  forecasters: ReadonlyMap<DemoQuestion, Member>,
): Promise<number> => {
  const file = async (source_id: string, reason: string) => {
    const question = questions.find(({ id }) => id === source_id)!;
    const client = forecasters.get(question)?.client;
    const params = { id: ids.get(question)! };
    return (await client?.call('fileDispute', { params, body: { reason } }))?.dispute.id;
  };
  const first = await file(
    'migraine-patch',
    'The announcement calls the result “nominally positive in the adherent group”. The rule speaks of the first announcement, and that sentence is in it.',
  );
  const second = await file(
    'store-remedy',
    'The published order has a fee cap in its annex as well. It is not obvious which of the two is the main remedy, so please look at section 9 again.',
  );
  if (first !== undefined) {
    const note =
      'The main endpoint covers all patients, and the announcement says that it was missed. The outcome stays NO.';
    const body = { status: 'rejected', note } as const;
    await admin.call('decideDispute', { params: { id: first }, body });
  }
  return [first, second].filter((id) => id !== undefined).length;
};
