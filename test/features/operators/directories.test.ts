import type { Test } from 'tap';
import {
  createDirectories,
  createDirectoryReader,
} from '../../../src/features/operators/directories.js';
import { makeConfig } from '../../help/parts.js';
import { openStores } from '../../help/stores.js';
import { t } from '../../help/tap.js';
import { directoryOf, makeKey, startOperator } from './operator.js';

const clock = () => new Date();

const open = async (t: Test, options: { readonly rest_ms?: number } = {}) => {
  const [old_key, new_key] = [makeKey(), makeKey()];
  const operator = await startOperator(t, old_key);
  const reader = createDirectoryReader(makeConfig(await openStores(t), operator.env));
  t.teardown(() => reader.close());
  const read: string[][] = [];
  const onRead = async (_: string, keys: ReadonlyMap<string, unknown>) => {
    read.push([...keys.keys()]);
  };
  const directories = createDirectories({ reader, clock, onRead, ...options });
  const { origin, state } = operator;
  const find = (keyid: string, agent_id = 'a') => directories.find(origin, keyid, agent_id);
  return { origin, reader, state, read, find, old_key, new_key };
};

t.test('a new key is found when its operator publishes it', async (t) => {
  const { state, find, read, old_key, new_key } = await open(t, { rest_ms: 0 });
  t.ok((await find(old_key.keyid))?.has(old_key.keyid));
  state.answer = directoryOf(new_key);
  t.ok((await find(old_key.keyid))?.has(old_key.keyid), 'the answer is good for an hour');
  t.equal(state.asked, 1);
  const rotated = await find(new_key.keyid);
  t.same([...(rotated?.keys() ?? [])], [new_key.keyid]);
  t.same(read, [[old_key.keyid], [new_key.keyid]]);
});

t.test('a directory that cannot be reached keeps its keys', async (t) => {
  const { state, find, old_key, new_key } = await open(t, { rest_ms: 0 });
  await find(old_key.keyid);
  state.answer = { status: 503, body: '' };
  t.equal(await find(new_key.keyid), null);
  t.equal(state.asked, 2);
  t.ok((await find(old_key.keyid))?.has(old_key.keyid));
});

t.test('many requests share one fetch, and then its directory rests', async (t) => {
  const { state, find, old_key, new_key } = await open(t);
  const found = Array.from({ length: 50 }, (_, n) => find(old_key.keyid, `agent ${n}`));
  await Promise.all(found);
  t.equal(state.asked, 1);
  t.equal((await find(new_key.keyid))?.has(new_key.keyid), false, 'known not to be there');
  t.equal(state.asked, 1);
});

t.test('an agent has one directory fetched at a time, and one waiting', async (t) => {
  const { origin, state, reader } = await open(t);
  state.answer = null;
  const directories = createDirectories({ reader, clock, onRead: async () => undefined });
  const others = ['?', '#', '/..'].map((end) => `${origin}/x${end}`);
  const found = others.map((other) => directories.find(other, 'k', 'a'));
  t.equal(await found[2], null, 'no room, at once');
  t.ok(state.asked <= 1);
});

t.test('how long an answer is used follows its Cache-Control, within bounds', async (t) => {
  const { origin, state, reader, old_key } = await open(t);
  const { body } = directoryOf(old_key);
  const read = async (cache: string) => {
    state.answer = { body, headers: cache === '' ? {} : { 'cache-control': cache } };
    return (await reader.read(origin, new Date()))?.fresh_ms;
  };
  t.equal(await read(''), 3_600_000);
  t.equal(await read('public, max-age=600'), 600_000);
  t.equal(await read('max-age=0'), 60_000);
  t.equal(await read('s-maxage=5, max-age=999999'), 86_400_000);
});

t.test('a directory of more than 64 KB is none', async (t) => {
  const { origin, state, reader, old_key } = await open(t);
  const { body } = directoryOf(old_key);
  const size = 65_536 - body.length;
  state.answer = { body: body + ' '.repeat(size) };
  t.ok(await reader.read(origin, new Date()));
  state.answer = { body: ' '.repeat(size + 1) + body };
  t.equal(await reader.read(origin, new Date()), null);
});
