import { t } from 'tap';
import { createConsensusProjector, tallyKey } from '../../../src/features/consensus/index.js';
import type { LogEntry } from '../../../src/features/events/index.js';
import { createProjection } from '../../../src/features/events/projection.js';
import { makeId } from '../../../src/kit/ids.js';
import { makeLogWriter } from '../../help/log.js';
import { openParts } from '../../help/parts.js';

/** How Redis follows a log that is busy. */

t.test('while events come they are projected in portions, and at once when none do', async (t) => {
  const { deps } = await openParts(t);
  const { sql, redis, config } = deps;
  const prefix = config.REDIS_PREFIX;
  const log = makeLogWriter(sql, redis, prefix);
  await redis.set(`${prefix}:{log}:projected`, 0);
  const portions: number[][] = [];
  const seen = {
    name: 'seen',
    project: async (entries: readonly LogEntry[]) => {
      portions.push(entries.map(({ offset }) => offset));
    },
  };
  const projection = createProjection({ ...deps, prefix, projectors: [seen] });
  await projection.update(1, await log.record(1));
  t.same(portions, [[1]], 'the first one does not wait');
  await projection.update(3, await log.record(2));
  await projection.update(4, await log.record(1));
  await projection.update(4, []);
  t.same(portions.flat(), [1, 2, 3, 4], 'each of them once, in order');
  t.equal(await redis.get(`${prefix}:{log}:projected`), '4');
  await log.record(2);
  await projection.update(6, []);
  t.same(portions.at(-1), [5, 6], 'what is not at hand is read from the record');
});

const entryAt = (question_id: string, offset: number, probability: number): LogEntry => {
  const data = { model_family: 'gpt', prediction: true, probability };
  return {
    ...{ offset, id: makeId(), event: 'prediction.placed', question_id, agent_id: makeId() },
    ...{ audience_id: null, category: null, subcategory: null, owner_id: null },
    body: JSON.stringify({ data, timestamp: `2026-01-01T00:00:0${offset}.000Z` }),
  };
};

t.test('of a portion that is counted in part, the rest is counted', async (t) => {
  const { deps } = await openParts(t);
  const prefix = deps.config.REDIS_PREFIX;
  const projector = createConsensusProjector(deps);
  const question_id = makeId();
  const probabilities = [70, 70, 80, 70];
  const entries = probabilities.map((one, i) => entryAt(question_id, i + 1, one));
  const tally = tallyKey(prefix, question_id);
  await deps.redis.hset(tally, 'o', 2, 't', '2026-01-01T00:00:02.000Z', 'gpt|y|70|1', 2);
  for (const times of [1, 2]) {
    await projector.project?.(entries);
    t.same(
      { ...(await deps.redis.hgetall(tally)) },
      { o: '4', t: '2026-01-01T00:00:04.000Z', 'gpt|y|70|1': '3', 'gpt|y|80|1': '1' },
      `projected ${times} times`,
    );
  }
});

t.test('predictions of one owner move together, and options add up', async (t) => {
  const { deps } = await openParts(t);
  const { sql, redis, config } = deps;
  const question_id = makeId();
  await sql`
    insert into questions (
      id, question, category, question_type, options, status, timeframe, opens_at, closes_at,
      resolution_date, published_at
    )
    values (
      ${question_id}, 'Which of them will it be?', 'technology', 'multi', '{2026,Rain}', 'open',
      'long', now(), now() + interval '1 day', now() + interval '1 day', now()
    )`;
  const tally = tallyKey(config.REDIS_PREFIX, question_id);
  await redis.hset(tally, 'o', 0, 't', '');
  const owner_id = makeId();
  const says = (offset: number, more: object): LogEntry => ({
    ...entryAt(question_id, offset, 0),
    owner_id,
    body: JSON.stringify({
      data: { model_family: 'gpt', confidence: 60, option_index: 1, option_count: 2, ...more },
      timestamp: `2026-01-01T00:00:0${offset}.000Z`,
    }),
  });
  const entries = [
    says(1, {}),
    says(2, { probabilities: { Rain: 60, 2026: 40 } }),
    { ...says(3, { model_family: 'claude' }), owner_id: null },
  ];
  await createConsensusProjector(deps).project?.(entries);
  t.same(
    { ...(await redis.hgetall(tally)) },
    {
      ...{ o: '3', t: '2026-01-01T00:00:03.000Z', 'gpt|1|60|2': '2', 'claude|1|60|1': '1' },
      ...{ 'gpt|0': '80', 'gpt|1': '120', 'claude|0': '40', 'claude|1': '60' },
    },
  );
});
