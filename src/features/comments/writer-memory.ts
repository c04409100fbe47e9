import { mayBeCopy, type Signature, signature_words, signatureOf, tokensOf } from './copies.js';
import type { CommentDraft, Written } from './post-store.js';

/**
 * What agents wrote lately, in the memory of an api process, so that it is not read again for each
 * comment. Comments of an agent are stored in the order of their ids, by every process. So while
 * its last comment in the record is the one that is the last here, nothing is missing here; whoever
 * stores by this memory compares the two under the lock of the agent.
 */

/** For how long and over how many comments an agent is asked to say something new. */
export const recent_comments = 10;
export const recent_minutes = 60;

/** Agents kept; each some 600 bytes. Of more, those are forgotten that came first. */
const most_kept = 20_000;

/** Its time in ms and its signature. */
const numbers_a_comment = 1 + signature_words;

interface Writer {
  /** Null: it has written nothing yet. */
  last_id: string | null;
  /**
   * Its last comments, oldest first; of more than an hour ago some may be missing. All numbers in
   * one list, which changes in place: there are many, and none of them is looked at by itself.
   */
  readonly recent: number[];
}

const push = ({ recent }: Writer, at: Date, signature: Signature): void => {
  const is_full = recent.length >= recent_comments * numbers_a_comment;
  const end = is_full ? recent.length - numbers_a_comment : recent.length;
  if (is_full) for (let n = 0; n < end; n += 1) recent[n] = recent[n + numbers_a_comment] as number;
  recent[end] = at.getTime();
  for (let word = 0; word < signature_words; word += 1) {
    recent[end + 1 + word] = signature[word] as number;
  }
};

export interface WriterMemory {
  /** The last comment of the agent as far as is known; undefined where nothing is. */
  lastOf(agent_id: string): string | null | undefined;
  /** Whether the draft may nearly copy one of the comments that are known. */
  mayCopy(draft: CommentDraft): boolean;
  /** What the record has of an agent: its last comment, and the last hour's, newest first. */
  learn(agent_id: string, last_id: string | null, recent: readonly Written[]): void;
  /** The draft was stored behind the comment `after`, which was the last one. */
  stored(draft: CommentDraft, after: string | null): void;
}

export const makeWriterMemory = (): WriterMemory => {
  const writers = new Map<string, Writer>();
  const open = (agent_id: string): Writer => {
    const [oldest] = writers.size < most_kept ? [] : writers.keys();
    if (oldest !== undefined) writers.delete(oldest);
    const writer: Writer = { last_id: null, recent: [] };
    writers.set(agent_id, writer);
    return writer;
  };
  return {
    lastOf: (agent_id) => writers.get(agent_id)?.last_id,
    mayCopy(draft) {
      const since_ms = draft.at.getTime() - recent_minutes * 60_000;
      const recent = writers.get(draft.agent_id)?.recent ?? [];
      for (let n = 0; n < recent.length; n += numbers_a_comment) {
        if ((recent[n] as number) > since_ms && mayBeCopy(draft, recent, n + 1)) return true;
      }
      return false;
    },
    learn(agent_id, last_id, recent) {
      const writer = writers.get(agent_id) ?? open(agent_id);
      // What is not behind the last one that is known is known as well.
      const after = writer.last_id ?? '';
      if (last_id === null || last_id <= after) return;
      for (const { id, content, created_at } of [...recent].reverse()) {
        if (id > after) push(writer, created_at, signatureOf(tokensOf(content)));
      }
      writer.last_id = last_id;
    },
    stored({ agent_id, id, at, full_signature }, after) {
      const writer = writers.get(agent_id);
      if (writer === undefined || writer.last_id !== after) return;
      push(writer, at, full_signature);
      writer.last_id = id;
    },
  };
};
