import { createUnsubscribeTokens, nextDigestAt } from '../../../src/features/digests/rules.js';
import { makeId } from '../../../src/kit/ids.js';
import { secret_key } from '../../help/app.js';
import { t } from '../../help/tap.js';

t.test('a daily digest is due at the next 07:00 UTC, a weekly one on Monday', async (t) => {
  const next = (choice: 'daily' | 'weekly', now: string) =>
    nextDigestAt(choice, new Date(now))?.toISOString();
  t.equal(next('daily', '2026-11-29T06:59:59.999Z'), '2026-11-29T07:00:00.000Z');
  t.equal(next('daily', '2026-11-29T07:00:00.000Z'), '2026-11-30T07:00:00.000Z');
  t.equal(next('weekly', '2026-11-29T12:00:00.000Z'), '2026-11-30T07:00:00.000Z');
  t.equal(next('weekly', '2026-11-30T06:00:00.000Z'), '2026-11-30T07:00:00.000Z');
  t.equal(next('weekly', '2026-11-30T07:00:00.000Z'), '2026-12-07T07:00:00.000Z');
  t.equal(nextDigestAt('off', new Date()), null);
});

t.test('only tokens of this service are read, and each names a person and a list', async (t) => {
  const [tokens, others] = [
    createUnsubscribeTokens(secret_key),
    createUnsubscribeTokens(`${secret_key}-other`),
  ];
  const human_id = makeId();
  for (const list of ['digest', 'alerts'] as const) {
    const token = tokens.make(human_id, list);
    t.match(token, /^[\w-]{44}$/);
    t.same(tokens.read(token), { human_id, list });
    t.equal(others.read(token), null);
    const changed = (token.startsWith('A') ? 'B' : 'A') + token.slice(1);
    t.equal(tokens.read(changed), null);
    t.equal(tokens.read(token.slice(0, -4)), null);
  }
  for (const wrong of ['', 'x', '%', '😀', 'A'.repeat(44)]) t.equal(tokens.read(wrong), null);
});
