import { InvalidWebhook, verifyWebhook } from '#client/node.js';
import { standardSecret } from '../../src/features/webhooks/signing.js';
import { makeSent } from '../help/signed-deliveries.js';
import { t } from '../help/tap.js';

t.test('what the service signed passes, and nothing else', async (t) => {
  for (const { what, headers, body, secret, is_right } of makeSent()) {
    for (const given of [secret, standardSecret(secret)]) {
      const verified = verifyWebhook(headers, body, given);
      if (!is_right) {
        await t.rejects(verified, InvalidWebhook, what);
        continue;
      }
      const { id, event, data } = await verified;
      t.same(
        { id, event, data },
        { id: 'evt_1', event: 'question.created', data: JSON.parse(body).data },
      );
    }
  }
});

const [right] = makeSent();
if (right === undefined) throw new Error('no delivery is right');

t.test('headers and bodies come as programs have them', async (t) => {
  const { headers, body, secret } = right;
  const bytes = new TextEncoder().encode(`xx${body}`).subarray(2);
  for (const one of [body, bytes, Buffer.from(body), bytes.slice().buffer]) {
    t.equal((await verifyWebhook(headers, one, secret)).event, 'question.created');
  }
  const request = new Request('https://a.example', { method: 'POST', headers, body });
  const event = await verifyWebhook(request.headers, await request.arrayBuffer(), secret);
  t.equal(event.timestamp, JSON.parse(body).timestamp);
});

t.test('one changed character of the signature is one too many', async (t) => {
  const { headers, body, secret } = right;
  const signature = headers['webhook-signature'] ?? '';
  const flipped = signature[10] === 'A' ? 'B' : 'A';
  const altered = signature.slice(0, 10) + flipped + signature.slice(11);
  for (const other of [altered, signature.slice(3), `v2${signature.slice(2)}`, 'v1,', '']) {
    const changed = { ...headers, 'webhook-signature': other };
    await t.rejects(verifyWebhook(changed, body, secret), InvalidWebhook, other);
  }
});

t.test('a secret that is missing is a mistake of the receiver, not of the delivery', async (t) => {
  for (const secret of ['', 'whsec_', 'whsec_☂']) {
    await t.rejects(verifyWebhook(right.headers, right.body, secret), TypeError);
  }
});
