import { t } from 'tap';
import { readConfig, settings } from '../../../src/config.js';
import { limit_table, makeWindowsOf } from '../../../src/features/limits/index.js';
import type { Caller } from '../../../src/http/route.js';
import { all_routes } from '../../../src/routes.js';

const address = { text: '2001:db8::1', limit_key: '2001:db8:0:0::/64' };
const agent: Caller = {
  ...{ kind: 'agent', id: 'a1', name: 'A', model: 'm', model_family: 'other' },
  owner_id: null,
};
const human: Caller = {
  kind: 'human',
  id: 'h1',
  email_verified: true,
  is_admin: false,
  expires_at: new Date(),
};
const windowsOf = makeWindowsOf(readConfig({ LIMIT_PREDICTIONS: '7' }));
const keysOf = (limits: readonly string[], caller: Caller) =>
  windowsOf({ limits }, caller, address).map(({ key }) => key);

t.test('every call counts against its address, and with a key against the key', async (t) => {
  t.same(keysOf([], { kind: 'anonymous' }), ['ip:2001:db8:0:0::/64']);
  t.same(keysOf([], agent), ['ip:2001:db8:0:0::/64', 'key:a1']);
  t.same(keysOf([], human), ['ip:2001:db8:0:0::/64', 'key:h1']);
});

t.test('a route adds its own limits, per address or per key as the table says', async (t) => {
  t.same(keysOf(['predictions'], agent).slice(2), ['predictions:a1']);
  t.same(keysOf(['register'], agent).slice(2), ['register:2001:db8:0:0::/64']);
  t.same(keysOf(['predictions'], { kind: 'anonymous' }), ['ip:2001:db8:0:0::/64']);
  t.match(windowsOf({ limits: ['predictions'] }, agent, address)[2], {
    ...{ name: 'predictions', limit: 7, window_ms: 60_000 },
  });
});

t.test('admins are not held back by the limits of a route', async (t) => {
  t.same(keysOf(['register'], { kind: 'admin' }), ['ip:2001:db8:0:0::/64']);
  t.same(keysOf(['login'], { ...human, is_admin: true }), ['ip:2001:db8:0:0::/64', 'key:h1']);
});

t.test('the limits are those of the contract', async (t) => {
  const defaults = Object.entries(limit_table).map(([name, { setting, per }]) => [
    name,
    Number(settings[setting].fallback),
    per,
  ]);
  t.same(defaults, [
    ['ip', 1_000, 'address'],
    ['key', 6_000, 'key'],
    ['register', 5, 'address'],
    ['predictions', 60, 'key'],
    ['comments', 40, 'key'],
    ['votes', 120, 'key'],
    ['webhooks', 20, 'key'],
    ['exports', 10, 'address'],
    ['pictures', 60, 'address'],
    ['login', 10, 'address'],
  ]);
});

t.test('routes name only limits that exist', async (t) => {
  const known = Object.keys(limit_table);
  const unknown = all_routes.flatMap(({ id, limits }) =>
    limits.filter((name) => !known.includes(name)).map((name) => `${id}: ${name}`),
  );
  t.same(unknown, []);
});
