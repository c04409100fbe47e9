import { type Address, type Host, makeHostFinder, readAddress } from '../../src/db/address.js';
import { t } from '../help/tap.js';

const targetsOf = ({ hosts }: Address): unknown[] => hosts.map(({ target }) => target);

t.test('an address has one host or several, as libpq reads them', async (t) => {
  const two = readAddress('postgres://u:p@a:5433,[::1]/db?target_session_attrs=any&sslmode=prefer');
  t.same(targetsOf(two), [
    { host: 'a', port: 5433 },
    { host: '::1', port: 5432 },
  ]);
  t.match(two, { wish: 'any', url: 'postgres://u:p@localhost/db', hosts: [{ tls: 'prefer' }] });
  const folders = readAddress('postgresql://u@localhost:5440/db?host=/one,/two&application_name=x');
  t.same(targetsOf(folders), [{ path: '/one/.s.PGSQL.5440' }, { path: '/two/.s.PGSQL.5440' }]);
  t.match(folders, { wish: 'primary', url: 'postgresql://u@localhost/db?application_name=x' });
  const ports = readAddress('postgres://u@/db?host=a,b&port=1,2');
  t.same(targetsOf(ports), [
    { host: 'a', port: 1 },
    { host: 'b', port: 2 },
  ]);
  t.match(readAddress('postgres://u@%2Fvar%2Frun/db'), {
    wish: 'any',
    hosts: [{ target: { path: '/var/run/.s.PGSQL.5432' } }],
  });
});

t.test('a wrong address is refused with what is wrong, and without the password', async (t) => {
  const wrong: Readonly<Record<string, RegExp>> = {
    'mysql://u:secret@a/db': /must look like postgres:/,
    'a:5432': /must look like postgres:/,
    'postgres://u:secret@a:5432,b:99999/db': /99999 is not a port/,
    'postgres://u:secret@a:b:1/db': /a:b:1 is not host:port/,
    'postgres://u:secret@a,b,c/db?port=1,2': /3 hosts and 2 ports/,
    'postgres://u:secret@a/db?target_session_attrs=master': /must be one of any, read-write/,
    'postgres://u:secr%et^/@a/db': /percent-encoded/,
    'postgres://u:secret/x@a/db': /percent-encoded/,
    'postgres://u:secret?x@a/db': /percent-encoded/,
    'postgres://u:1/secret=@a/db': /percent-encoded/,
  };
  for (const [url, message] of Object.entries(wrong)) {
    const error = (() => {
      try {
        readAddress(url);
      } catch (error) {
        return (error as Error).message;
      }
      return 'it was taken';
    })();
    t.match(error, message, url);
    t.notMatch(error, /secret/);
  }
});

const primary = { standby: false, read_only: false };
const standby = { standby: true, read_only: true };
const closed = { standby: false, read_only: true };

t.test('of several hosts the one is found that is wanted, and again after a change', async (t) => {
  const states = new Map([
    ['a:5432', standby],
    ['b:5432', primary],
    ['c:5432', closed],
  ]);
  const probe = async ({ name }: Host) => states.get(name) ?? standby;
  const finder = (wish: string) =>
    makeHostFinder(readAddress(`postgres://u@a,b,c/db?target_session_attrs=${wish}`), probe);
  const find = async (wish: string) => (await finder(wish).find()).name;
  t.equal(await find('read-write'), 'b:5432');
  t.equal(await find('primary'), 'b:5432');
  t.equal(await find('standby'), 'a:5432');
  t.equal(await find('prefer-standby'), 'a:5432');
  const follows = finder('primary');
  t.equal((await follows.find()).name, 'b:5432');
  states.set('a:5432', primary).set('b:5432', standby).set('c:5432', standby);
  t.equal((await follows.find()).name, 'b:5432', 'asked only when something changed');
  follows.forget();
  t.equal((await follows.find()).name, 'a:5432');
  states.set('a:5432', standby);
  follows.forget();
  await t.rejects(follows.find(), { code: 'NO_HOST', message: /a:5432: is a read-only standby/ });
});
