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
  await deps.redis.hset(tally, 'o', 2, 't', '2026-01-01T00:00:02.000Z', 'gpt|y|70', 2);
  for (const times of [1, 2]) {
    await projector.project?.(entries);
    t.same(
      { ...(await deps.redis.hgetall(tally)) },
      { o: '4', t: '2026-01-01T00:00:04.000Z', 'gpt|y|70': '3', 'gpt|y|80': '1' },
      `projected ${times} times`,
    );
  }
});

t.test(
  'a tally begins with the portion where the log has no more, else with the record',
  async (t) => {
    const { deps } = await openParts(t);
    const { sql, redis, config } = deps;
    const projector = createConsensusProjector(deps);
    const tallyOf = async (id: string) => ({
      ...(await redis.hgetall(tallyKey(config.REDIS_PREFIX, id))),
    });
    // The record has no predictions: what it would give is an empty tally.
    const [whole, longer, unknown] = [makeId(), makeId(), makeId()];
    await sql`
    insert into questions (
      id, question, category, subcategory, question_type, status, timeframe, weight, opens_at,
      closes_at, resolution_date, published_at
    )
    select
      id, 'Will the tally begin with the portion of the log?', 'technology', 'data', 'binary',
      'open', 'long', 1, now(),
      now() + interval '1 day', now() + interval '1 day', now()
    from unnest(${[whole, longer]}::uuid[]) as d (id)`;
    await sql`
    insert into question_counts (question_id, prediction_count)
    values (${whole}, 3), (${longer}, 4)`;
    const ids = [whole, longer, unknown];
    const entries = ids.flatMap((id, n) =>
      [70, 80, 70].map((probability, i) => entryAt(id, 3 * n + i + 1, probability)),
    );
    await projector.project?.(entries);
    t.same(await tallyOf(whole), {
      ...{ o: '3', t: '2026-01-01T00:00:03.000Z' },
      ...{ 'gpt|y|70': '2', 'gpt|y|80': '1' },
    });
    for (const id of [longer, unknown]) t.same(await tallyOf(id), { o: '0', t: '' });
  },
);
