import { makeHeaders, makeSecret } from '../../src/features/webhooks/signing.js';

/** Deliveries signed as the service signs them, and others that a receiver must refuse. */

export interface Sent {
  readonly what: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly secret: string;
  readonly is_right: boolean;
}

const body = JSON.stringify({
  event: 'question.created',
  data: { question: 'Wird es regnen? ☂' },
  timestamp: '2026-01-02T03:04:05.000Z',
});

export const makeSent = (): readonly Sent[] => {
  const [secret, old_secret, other] = [makeSecret(), makeSecret(), makeSecret()];
  const headersAt = (age_s: number, old: string | null = null) => {
    const made = makeHeaders({
      key: Buffer.from(secret, 'ascii'),
      old_keys: old === null ? [] : [Buffer.from(old, 'ascii')],
      event_id: 'evt_1',
      timestamp_s: Math.floor(Date.now() / 1_000) - age_s,
      body: Buffer.from(body),
      prefix: 'X-Svc',
      event: 'question.created',
      delivery_id: 'd_1',
      attempt: 1,
      offset: 1,
    });
    return Object.fromEntries(
      Object.entries(made).map(([name, value]) => [name.toLowerCase(), value]),
    );
  };
  const right = headersAt(0);
  const both = headersAt(0, old_secret);
  const sent = (what: string, is_right: boolean, parts: Partial<Sent>): Sent => ({
    what,
    is_right,
    headers: right,
    body,
    secret,
    ...parts,
  });
  return [
    sent('right', true, {}),
    sent('new secret of a rotation', true, { headers: both }),
    sent('old secret of a rotation', true, { headers: both, secret: old_secret }),
    sent('another secret', false, { secret: other }),
    sent('another body', false, { body: `${body} ` }),
    sent('another id', false, { headers: { ...right, 'webhook-id': 'evt_2' } }),
    sent('nearly too old', true, { headers: headersAt(290) }),
    sent('too old', false, { headers: headersAt(310) }),
    sent('of a clock that is fast', true, { headers: headersAt(-290) }),
    sent('from the future', false, { headers: headersAt(-310) }),
    sent('no signature', false, { headers: { ...right, 'webhook-signature': '' } }),
    sent('no headers', false, { headers: {} }),
    sent('no time', false, { headers: { ...right, 'webhook-timestamp': 'soon' } }),
    sent('nonsense', false, { headers: { ...right, 'webhook-signature': 'v1,☂ v1, ,' } }),
  ];
};
