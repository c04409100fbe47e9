import fc from 'fast-check';
import { test } from 'tap';
import {
  type FilterMembers,
  passesFilter,
  readFilter,
} from '../../../src/features/events/index.js';
import { planDeliveries } from '../../../src/features/webhooks/index.js';
import { findNarrowing } from '../../../src/features/webhooks/rules.js';
import { insertWebhook } from '../../../src/features/webhooks/store.js';
import { isFault } from '../../../src/kit/fault.js';
import { makeId } from '../../../src/kit/ids.js';
import { anyBody, anyEventNames, anyNarrowing, anyPlace } from '../../help/filters.js';
import { makeLogWriter } from '../../help/log.js';
import { openParts } from '../../help/parts.js';
import { pillars } from '../../help/taxonomy.js';

/** What a webhook narrows by: its names, and that deliveries are planned by what they mean. */

test('deliveries are planned of exactly what passes the same filter on a socket', async (t) => {
  const { deps, stores } = await openParts(t);
  const log = makeLogWriter(deps.sql, deps.redis, stores.redis_prefix);
  const anyHook = fc.record({
    events: anyEventNames,
    filter: fc.record(anyNarrowing, { requiredKeys: [] }),
  });
  const hooks: { id: string; wanted: FilterMembers }[] = [];
  for (const { events, filter: given } of fc.sample(anyHook, 80)) {
    const filter = readFilter(given, { pillars, path: 'body.filter' });
    if (isFault(filter)) throw new Error(filter.message);
    const id = makeId();
    await insertWebhook(deps.sql, {
      ...{ id, owner: { kind: 'agent', id: makeId() }, url: 'https://a.example.org', events },
      ...{ secret_sealed: Buffer.from('secret'), filter: filter?.shown },
    });
    hooks.push({ id, wanted: { ...filter?.shown, events } });
  }
  for (const [place, body] of fc.sample(fc.tuple(anyPlace, anyBody), 150)) {
    await log.record(1, { ...place, ...body, audience_id: null });
  }
  await deps.sql.begin((tx) => planDeliveries(tx, { first: 1, last: 150 }));
  for (const { id, wanted } of hooks) {
    const rows = await deps.sql<{ event_offset: number }[]>`
      select event_offset from deliveries where webhook_id = ${id} order by event_offset`;
    t.strictSame(
      rows.map(({ event_offset }) => event_offset),
      log.entries.filter((entry) => passesFilter(wanted, { ...entry })).map(({ offset }) => offset),
      JSON.stringify(wanted),
    );
  }
});

test('members that would have narrowed are named with what to use, others are ignored', (t) => {
  const pathsOf = (body: object) => findNarrowing(body).map(({ path }) => path);
  const good = { url: 'https://a.example.org', events: ['question.created'], active: true };
  const filter = { question_ids: [], categories: [], model_family: 'gpt', min_confidence: 1 };
  t.strictSame(pathsOf({ ...good, filter, scope_question_id: 'x' }), []);
  t.strictSame(pathsOf({ ...good, filter: null }), []);
  t.strictSame(pathsOf({ ...good, name: 'mine', secret: 's', agent_id: 'a', event_data: 1 }), []);
  t.strictSame(pathsOf({ ...good, scope: null, topics: null }), [], 'null narrows nothing');
  const meant = [
    ...['scope', 'scope_category', 'scopeQuestionId', 'topics', 'filters', 'subcategory', 'tags'],
    ...['question_id', 'question_ids', 'questionIds', 'category', 'categories', 'model_families'],
    ...['model_family', 'min_confidence', 'event_types'],
  ];
  const message = /by filter with question_ids, categories, model_family, min_confidence/;
  for (const name of meant) {
    t.match(findNarrowing({ ...good, [name]: 'x' }), [{ path: `body.${name}`, message }]);
  }
  t.strictSame(pathsOf({ filter: { model_families: ['gpt'], odd: 1, events: ['x'] } }), [
    'body.filter.model_families',
    'body.filter.odd',
    'body.filter.events',
  ]);
  t.end();
});
