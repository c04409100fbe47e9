import { t } from 'tap';
import { agentId, questionId, seed } from '../../../bench/env/seed.js';
import { makeApiKey } from '../../../src/features/agents/index.js';
import { signatureOf, tokensOf } from '../../../src/features/comments/copies.js';
import type { CommentDraft } from '../../../src/features/comments/post-store.js';
import { insertExpecting } from '../../../src/features/comments/quick-store.js';
import { makeId } from '../../../src/kit/ids.js';
import { openSql, type Tx } from '../../../src/kit/pg/client.js';
import { inLine, sendNow, sendOne } from '../../../src/kit/pg/short-transaction.js';
import { openParts } from '../../help/parts.js';
import { makeContent } from './texts.js';

const { deps, stores } = await openParts(t);
const { sql } = deps;
await seed(sql, { keys: [makeApiKey(), makeApiKey()], questions: 1 });
const rules = { most: 5, least_points: 0 };

const makeDraft = (agent: number): CommentDraft => {
  const id = makeId();
  const content = makeContent();
  const tokens = tokensOf(content);
  const signature = signatureOf(tokens);
  return {
    ...{ id, question_id: questionId(0), agent_id: agentId(agent) },
    ...{ prediction_id: null, parent_id: null, root_id: id, depth: 0 },
    ...{ content, tokens, signature, full_signature: signature },
    body_digest: 'ab'.repeat(32),
    at: new Date(),
    ...{ event_id: makeId(), event_body: '{}', reply_event: null },
  };
};

const readStored = async (): Promise<readonly string[]> =>
  (await sql<{ id: string }[]>`select id from comments`).map(({ id }) => id);

t.test('with its lock a batch is stored; the statement alone stores nothing', async (t) => {
  const line = openSql({ url: stores.database_url, pool: 1, prepare: true, name: 'line' });
  t.teardown(() => line.end({ timeout: 1 }));
  const draft = makeDraft(0);
  const expecting = [{ draft, last_id: null }];
  const ids = await inLine(line, (tx) => insertExpecting(tx, expecting, rules, sendNow));
  t.same([...ids], [draft.id]);
  t.same(await readStored(), [draft.id]);
  // As after a connection that was lost: the lock is not of the transaction that stores.
  const apart = sql as unknown as Tx;
  const alone = [{ draft: makeDraft(1), last_id: null }];
  t.equal((await insertExpecting(apart, alone, rules, sendOne)).size, 0);
  t.same(await readStored(), [draft.id]);
  const again = await inLine(line, (tx) => insertExpecting(tx, alone, rules, sendNow));
  t.equal(again.size, 1, 'nothing else was wrong with it');
});
