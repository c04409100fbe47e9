import { t } from 'tap';
import { signatureOf, tokensOf } from '../../../src/features/comments/copies.js';
import type { CommentDraft } from '../../../src/features/comments/post-store.js';
import { makeWriterMemory } from '../../../src/features/comments/writer-memory.js';
import { makeContent } from './texts.js';

const agent_id = 'agent';
const began_ms = Date.UTC(2026, 2, 1, 12);
const minute_ms = 60_000;
const texts = Array.from({ length: 14 }, makeContent);
const idOf = (n: number): string => `id-${String(n).padStart(3, '0')}`;

/** What the memory looks at of comment `n`, written `n` minutes after the beginning. */
const draftOf = (n: number, text = texts[n] ?? ''): CommentDraft => {
  const tokens = tokensOf(text);
  const signature = signatureOf(tokens);
  const at = new Date(began_ms + n * minute_ms);
  const seen = { id: idOf(n), agent_id, content: text, at };
  return { ...seen, tokens, signature, full_signature: signature } as unknown as CommentDraft;
};
const rowOf = (n: number) => {
  const { id, content, at } = draftOf(n);
  return { id, agent_id, content, created_at: at };
};

t.test('of an agent the last ten comments of an hour are compared', async (t) => {
  const memory = makeWriterMemory();
  t.equal(memory.lastOf(agent_id), undefined);
  memory.learn(agent_id, null, []);
  t.equal(memory.lastOf(agent_id), null);
  for (let n = 0; n < 13; n += 1) memory.stored(draftOf(n), n === 0 ? null : idOf(n - 1));
  t.equal(memory.lastOf(agent_id), idOf(12));
  const again = texts.slice(0, 13).map((text) => memory.mayCopy(draftOf(13, text)));
  t.same(again, [false, false, false, ...Array.from({ length: 10 }, () => true)]);
  t.equal(memory.mayCopy(draftOf(63, texts[3])), false, 'an hour ago');
  t.equal(memory.mayCopy(draftOf(62.9, texts[3])), true);
  t.equal(memory.mayCopy(draftOf(13)), false);
});

t.test('what the record has is added to what is known, once', async (t) => {
  const memory = makeWriterMemory();
  memory.learn(agent_id, idOf(3), [3, 2, 1, 0].map(rowOf));
  memory.learn(agent_id, idOf(5), [5, 4, 3, 2, 1, 0].map(rowOf));
  memory.learn(agent_id, idOf(4), [4, 3, 2, 1, 0].map(rowOf));
  t.equal(memory.lastOf(agent_id), idOf(5), 'an older view says nothing new');
  memory.stored(draftOf(7), idOf(6));
  t.equal(memory.lastOf(agent_id), idOf(5), 'it does not follow on the last one known');
  for (let n = 6; n < 12; n += 1) memory.stored(draftOf(n), idOf(n - 1));
  const again = texts.slice(0, 13).map((text) => memory.mayCopy(draftOf(13, text)));
  const ten = Array.from({ length: 10 }, () => true);
  t.same(again, [false, false, ...ten, false]);
});
