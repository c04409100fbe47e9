import { Webhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import {
  createSealer,
  makeHeaders,
  makeSecret,
  signBody,
  signStandard,
  standardSecret,
} from '../../../src/features/webhooks/signing.js';
import { t } from '../../help/tap.js';

const secret = '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f';
const key = Buffer.from(secret, 'ascii');
const body = Buffer.from(
  '{"event":"question.created","data":{"question_id":"q_1","question":"Will it rain?",' +
    '"category":"technology"},"timestamp":"2026-01-02T03:04:05.000Z"}',
);
const signed = { key, event_id: 'evt_01', timestamp_s: 1_767_323_045, body };

t.test('both signatures equal the published vector', async (t) => {
  t.equal(
    signBody(key, body),
    'sha256=0b0228b9917e0701b36c0328a84a943dc220d81a42e86c28b08fa59e128975d1',
  );
  t.equal(signStandard(signed), 'v1,U+5FNkDvVH/IvnLLEg25VZi+UDRc8jxuosYkl7h+J1U=');
});

const envelope = (prefix: string, offset: number | null) =>
  makeHeaders({
    ...signed,
    old_keys: [],
    timestamp_s: Math.floor(Date.now() / 1_000),
    prefix,
    event: 'question.created',
    delivery_id: 'd-1',
    attempt: 3,
    offset,
  });

t.test('a Standard Webhooks library verifies the headers with the signing secret', async (t) => {
  const library = new Webhook(standardSecret(secret));
  const headers = envelope('X-Svc', 7);
  t.same(library.verify(body, headers), JSON.parse(body.toString()));
  t.throws(() => library.verify(Buffer.from(`${body} `), headers));
  t.throws(() => library.verify(body, { ...headers, 'webhook-id': 'evt_02' }));
  t.throws(() => new Webhook(standardSecret(makeSecret())).verify(body, headers));
  t.doesNotThrow(() => new SvixWebhook(standardSecret(secret)).verify(body, headers));
});

t.test(
  'the headers are exactly those of the design, with the prefix of the settings',
  async (t) => {
    t.same(Object.keys(envelope('X-Acme', 7)), [
      'Content-Type',
      'User-Agent',
      'webhook-id',
      'webhook-timestamp',
      'webhook-signature',
      'X-Acme-Event',
      'X-Acme-Signature',
      'X-Acme-Delivery',
      'X-Acme-Attempt',
      'X-Acme-Offset',
    ]);
    t.match(envelope('X-Svc', 7), {
      'Content-Type': 'application/json',
      'X-Svc-Event': 'question.created',
      'X-Svc-Delivery': 'd-1',
      'X-Svc-Attempt': '3',
      'X-Svc-Offset': '7',
      'webhook-id': 'evt_01',
    });
    t.notOk('X-Svc-Offset' in envelope('X-Svc', null), 'a ping is in no log');
  },
);

t.test('a secret is 64 hexadecimal characters and never the same twice', async (t) => {
  t.match(makeSecret(), /^[0-9a-f]{64}$/);
  t.not(makeSecret(), makeSecret());
});

const sealer = createSealer('a'.repeat(32));

t.test('a sealed secret opens for its webhook and its key only', async (t) => {
  const sealed = sealer.seal('hook-1', secret);
  t.equal(sealer.open('hook-1', sealed), secret);
  t.equal(sealer.open('hook-2', sealed), null);
  t.equal(createSealer('b'.repeat(32)).open('hook-1', sealed), null);
  t.notOk(sealed.includes(secret));
  t.notOk(sealed.includes(Buffer.from(secret, 'hex')));
  t.notSame(sealer.seal('hook-1', secret), sealed, 'each sealing has its own nonce');
});

t.test('a damaged sealed secret does not open', async (t) => {
  const sealed = sealer.seal('hook-1', secret);
  for (let i = 0; i < sealed.length; i += 1) {
    const damaged = Buffer.from(sealed);
    damaged[i] = (damaged[i] as number) ^ 1;
    t.equal(sealer.open('hook-1', damaged), null, `byte ${i}`);
  }
  t.equal(sealer.open('hook-1', sealed.subarray(0, 20)), null);
  t.equal(sealer.open('hook-1', Buffer.alloc(0)), null);
});
