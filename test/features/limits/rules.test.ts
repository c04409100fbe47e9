import { readConfig, settings } from '../../../src/config.js';
import { limit_table, makeWindowsOf } from '../../../src/features/limits/rules.js';
import type { Caller } from '../../../src/http/caller.js';
import type { Route } from '../../../src/http/route.js';
import { api_routes } from '../../../src/routes.js';
import { type Answered, startApp } from '../../help/app.js';
import { makeAgent, makeHuman } from '../../help/story.js';
import { t } from '../../help/tap.js';

/** `GET /api/limits`, the windows that count a call, and the limit that applies to each route. */

const app = await startApp(t, { roles: ['api'] });

interface Shown {
  readonly name: string;
  readonly limit: number;
  readonly left: number | null;
  readonly reset_seconds: number | null;
  readonly counts: readonly string[];
}

const shownIn = ({ body }: Answered): ReadonlyMap<string, Shown> =>
  new Map((body.limits as Shown[]).map((one) => [one.name, one]));
const read = async (key?: string) =>
  shownIn(await app.call('GET', '/api/limits', key === undefined ? {} : { key }));

t.test('every limit is listed with its window and what it counts', async (t) => {
  const answer = await app.call('GET', '/api/limits');
  t.equal(answer.headers.get('cache-control'), 'no-store');
  t.match(answer.body, { total: Object.keys(limit_table).length + 1, next_cursor: null });
  const shown = shownIn(answer);
  t.same([...shown.keys()], [...Object.keys(limit_table), 'login_failures']);
  t.match(shown.get('login_failures'), { window_seconds: 3_600, per: 'account', left: null });
  t.match(shown.get('register'), {
    limit: 1_000_000,
    window_seconds: 60,
    per: 'address',
    setting: 'LIMIT_REGISTER',
    counts: ['POST /api/register'],
  });
  t.match(shown.get('reports'), { window_seconds: 86_400, per: 'owner' });
  t.match(shown.get('ip'), { counts: ['every request'] });
  t.same(shown.get('key')?.left, null, 'nobody in particular has no key');
  t.same(shown.get('predictions')?.left, null);
});

t.test('a caller sees what is left, and asking takes no more than the request', async (t) => {
  const { key } = await makeAgent(app, { human: await makeHuman(app) });
  const first = await read(key);
  t.match(first.get('key'), { limit: 6_000, left: 5_999 });
  t.match(first.get('webhooks'), { limit: 20, left: 20, reset_seconds: 0 });
  await app.call('POST', '/api/webhooks', { key, body: {} });
  const second = await read(key);
  t.match(second.get('webhooks'), { left: 19 });
  const { reset_seconds } = second.get('webhooks') as Shown;
  t.ok(reset_seconds !== null && reset_seconds > 50 && reset_seconds <= 60, `${reset_seconds} s`);
  t.match(second.get('key'), { left: 5_997 });
  const third = await read(key);
  t.match(third.get('webhooks'), { left: 19 }, 'looking takes nothing');
  t.match(third.get('key'), { left: 5_996 }, 'but the request itself');
  const other = await makeAgent(app, { human: await makeHuman(app) });
  t.match((await read(other.key)).get('webhooks'), { left: 20 }, 'another key is another caller');
});

t.test('admins are counted by the general limits alone', async (t) => {
  const answer = await app.call('GET', '/api/limits', { admin: true });
  const shown = shownIn(answer);
  t.equal(shown.get('register')?.left, null);
  t.equal(typeof shown.get('ip')?.left, 'number');
});

/** The limits of the service, with the routes that they apply to. */
const due: readonly (readonly [limit: string, methods: readonly string[], path: RegExp])[] = [
  ['register', ['POST'], /^\/api\/register$/],
  ['login', ['POST'], /^\/api\/auth\/(?:signup|login|verify|resend|forgot|reset)$/],
  ['login', ['POST'], /^\/api\/me\/account\/(?:password|delete)$/],
  ['predictions', ['POST'], /^\/api\/(?:questions\/\{\w+\}\/predict|predictions)$/],
  ['predictions', ['PATCH'], /^\/api\/predictions\/\{\w+\}$/],
  ['comments', ['POST'], /\/(?:comments|reply|dispute)$/],
  ['reports', ['POST'], /^\/api\/\w+\/\{\w+\}\/report$/],
  ['votes', ['POST', 'DELETE'], /\/(?:upvote|downvote)$/],
  ['webhooks', ['POST', 'PATCH'], /^\/api\/webhooks(?:\/|$)/],
  ['exports', ['GET'], /^\/api\/(?:export\/|me\/export$)/],
  ['pictures', ['GET'], /\.png$/],
];

t.test('each limit is applied to the routes it is for, and to no others', async (t) => {
  const wrong: string[] = [];
  for (const { id, method, path, limits } of api_routes as readonly Route[]) {
    const expected = due
      .filter(([, methods, pattern]) => methods.includes(method) && pattern.test(path))
      .map(([name]) => name);
    const named = [...limits].sort().join();
    if (named !== expected.sort().join()) {
      wrong.push(`${id}: ${named || 'none'} where ${expected.join() || 'none'} was due`);
    }
  }
  t.same(wrong, []);
});

const address = { text: '2001:db8::1', limit_key: '2001:db8:0:0::/64' };
const agent: Caller = {
  kind: 'agent',
  id: 'a1',
  name: 'A',
  model: 'm',
  model_family: 'other',
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

t.test('a call counts against its address, its key and the limits of its route', async (t) => {
  const ip = 'ip:2001:db8:0:0::/64';
  for (const [limits, caller, keys] of [
    [[], { kind: 'anonymous' }, [ip]],
    [[], agent, [ip, 'key:a1']],
    [[], human, [ip, 'key:h1']],
    [['predictions'], agent, [ip, 'key:a1', 'predictions:a1']],
    [['register'], agent, [ip, 'key:a1', 'register:2001:db8:0:0::/64']],
    // Agents of one owner share this limit.
    [['reports'], { ...agent, owner_id: 'h1' }, [ip, 'key:a1', 'reports:h1']],
    [['reports'], human, [ip, 'key:h1', 'reports:h1']],
    [['predictions'], { kind: 'anonymous' }, [ip]],
    // Route limits do not apply to admins.
    [['register'], { kind: 'admin' }, [ip]],
    [['login'], { ...human, is_admin: true }, [ip, 'key:h1']],
  ] as const) {
    t.same(keysOf(limits, caller), keys, `${caller.kind}: ${limits}`);
  }
  t.match(windowsOf({ limits: ['predictions'] }, agent, address)[2], {
    name: 'predictions',
    limit: 7,
    window_ms: 60_000,
  });
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
    ['predictions', 120, 'key'],
    ['comments', 40, 'key'],
    ['votes', 120, 'key'],
    ['reports', 20, 'owner'],
    ['webhooks', 20, 'key'],
    ['exports', 10, 'address'],
    ['pictures', 60, 'address'],
    ['login', 10, 'address'],
  ]);
});
