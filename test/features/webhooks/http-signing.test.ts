import { parseDictionary } from 'structured-headers';
import { createHttpSigner } from '../../../src/features/webhooks/http-signing.js';
import { secret_key } from '../../help/app.js';
import { makeConfig } from '../../help/parts.js';
import type { Received } from '../../help/receiver.js';
import { makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { startHookApp } from './app.js';
import { directory, makeIsSigned } from './http-verifying.js';

/** Deliveries with an HTTP message signature, verified by an independent library. */

const origin = 'https://forum.example';
const { app, receiver, begin } = await startHookApp(t, { PUBLIC_URL: origin });

const isSigned = makeIsSigned(app, receiver);

t.test('a delivery is signed with the key that the service publishes', async (t) => {
  const { create } = await begin();
  const made = await create({ signature: 'rfc9421' }, '/signed?by=forum');
  t.equal(made.signature, 'rfc9421');
  await makeOpenQuestion(app);
  const [delivery] = (await receiver.waitFor('/signed?by=forum', 1)) as [Received];
  t.equal(await isSigned(delivery), true);
  const { headers } = delivery;
  t.equal(headers['signature-agent'], `forum="${origin}"`);
  t.match(headers['webhook-signature'], /^v1,/, 'the usual signatures are there as well');
  const parameters = parseDictionary(String(headers['signature-input'])).get('forum')?.[1];
  t.equal(Number(parameters?.get('expires')) - Number(parameters?.get('created')), 300);
  const body = Buffer.from(`${delivery.body} `);
  t.equal(await isSigned({ ...delivery, body }), false, 'another body');
  const changed: Readonly<Record<string, string>> = {
    'webhook-id': 'evt_01',
    'signature-agent': 'forum="https://other.example"',
    signature: String(headers['signature']).replace(/:./, (one) => (one === ':A' ? ':B' : ':A')),
  };
  for (const [name, value] of Object.entries(changed)) {
    t.equal(await isSigned({ ...delivery, headers: { ...headers, [name]: value } }), false, name);
  }
  t.equal(await isSigned({ ...delivery, path: '/other' }), false, 'another path');
});

t.test('a webhook chooses its signature, and keeps it', async (t) => {
  const { create, call } = await begin();
  const { id, signature } = await create({}, '/chosen');
  t.equal(signature, 'standard');
  const ping = async (count: number) => {
    t.equal((await call('POST', `/${id}/test`)).body.delivered, true);
    return (await receiver.waitFor('/chosen', count))[count - 1] as Received;
  };
  const plain = await ping(1);
  t.notOk(plain.headers['signature-input'] ?? plain.headers['content-digest']);
  t.equal((await call('PATCH', `/${id}`, { signature: 'rfc9421' })).body.signature, 'rfc9421');
  t.equal((await call('PATCH', `/${id}`, { active: true })).body.signature, 'rfc9421');
  t.equal(await isSigned(await ping(2)), true);
  t.equal((await call('PATCH', `/${id}`, { signature: 'standard' })).body.signature, 'standard');
  t.notOk((await ping(3)).headers['signature-input']);
  t.match((await call('PATCH', `/${id}`, { signature: 'rsa' })).body, { code: 'INVALID_REQUEST' });
});

t.test('the directory has the public key alone, the same in every process', async (t) => {
  const { status, headers, body } = await app.call('GET', directory);
  t.equal(status, 200);
  t.equal(headers.get('content-type'), 'application/http-message-signatures-directory+json');
  t.equal(headers.get('cache-control'), 'public, max-age=3600');
  const [key, ...others] = JSON.parse(body).keys;
  t.same(others, []);
  t.same(Object.keys(key).sort(), ['crv', 'kid', 'kty', 'use', 'x']);
  const config = makeConfig(app.stores);
  t.same(createHttpSigner(config, secret_key).directory.keys, [key]);
  t.not(createHttpSigner(config, 'x'.repeat(36)).directory.keys[0]?.x, key.x);
});
