import { readRedisAddress } from '../../src/redis/address.js';
import { t } from '../help/tap.js';

const none = { is_tls: false };

t.test('one server is left to ioredis', (t) => {
  for (const url of ['redis://h', 'rediss://u:p%40@h:1/3?family=6']) {
    t.same(readRedisAddress(url), { kind: 'server', url });
  }
  t.same(readRedisAddress('unix:/run/redis.sock'), { kind: 'server', url: '/run/redis.sock' });
  t.end();
});

t.test('a cluster has one host or several', (t) => {
  t.same(readRedisAddress('redis://a,b:7000,[::1]:7001/?cluster'), {
    kind: 'cluster',
    ...none,
    hosts: [
      { host: 'a', port: 6_379 },
      { host: 'b', port: 7_000 },
      { host: '::1', port: 7_001 },
    ],
  });
  t.same(readRedisAddress('rediss://me:p%40ss%2F@a?cluster'), {
    kind: 'cluster',
    username: 'me',
    password: 'p@ss/',
    is_tls: true,
    hosts: [{ host: 'a', port: 6_379 }],
  });
  t.match(readRedisAddress('redis://:p@a/0?cluster'), { password: 'p', username: undefined });
  t.end();
});

t.test('Sentinels have the name of a master, and a password of their own', (t) => {
  t.same(readRedisAddress('redis://:p@a,b:1/2?sentinel=forum&sentinel_password=q%26'), {
    kind: 'sentinel',
    ...none,
    name: 'forum',
    db: 2,
    password: 'p',
    sentinel_password: 'q&',
    hosts: [
      { host: 'a', port: 26_379 },
      { host: 'b', port: 1 },
    ],
  });
  t.end();
});

const wrong: readonly (readonly [url: string, says: RegExp])[] = [
  ['redis://a,b', /several hosts need \?cluster or \?sentinel=NAME/],
  ['redis://a,b/?sentinel=', /needs the name/],
  ['redis://a,b/?cluster&sentinel=x', /use \?cluster or \?sentinel=, not both/],
  ['redis://a,b/?cluster&db=1', /"db" is not a known option/],
  ['redis://a,b/1?cluster', /only database 0/],
  ['redis://a,b/x?sentinel=x', /"\/x" is not a database number/],
  ['redis://a,,b/?cluster', /"" is not a host/],
  ['redis://a:0,b/?cluster', /"a:0" is not a host/],
  ['redis://a:65536/?cluster', /"a:65536" is not a host/],
  ['redis://a:b:c/?cluster', /"a:b:c" is not a host/],
  ['redis:///?cluster', /"" is not a host/],
  ['http://a,b/?cluster', /must be redis:\/\/HOST, rediss:\/\/HOST/],
  ['http://cache:6379', /or unix:\/PATH/],
  ['cache:6379', /or unix:\/PATH/],
];

t.test('a wrong address says what is wrong with it', (t) => {
  for (const [url, says] of wrong) t.throws(() => readRedisAddress(url), says, url);
  t.throws(() => readRedisAddress('redis://u:%zz@a/?cluster'), /password/, 'a wrong % sign');
  t.end();
});
