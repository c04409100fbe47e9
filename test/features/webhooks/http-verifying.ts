import { createHash, createPublicKey } from 'node:crypto';
import { createVerifier, httpbis } from 'http-message-signatures';
import type { TestApp } from '../../help/app.js';
import type { Received, Receiver } from '../../help/receiver.js';

/** Verifies HTTP message signatures with an independent library. */

export const directory = '/.well-known/http-message-signatures-directory';

/** Verifies like a receiver that knows only the origin. False if there is no valid signature. */
export const makeIsSigned =
  (app: Pick<TestApp, 'call'>, receiver: Pick<Receiver, 'url'>) =>
  async ({ path, headers, body }: Received): Promise<boolean> => {
    const { keys } = JSON.parse((await app.call('GET', directory)).body);
    const url = receiver.url(path);
    const digest = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
    if (headers['content-digest'] !== digest) return false;
    const verified = await httpbis
      .verifyMessage(
        {
          keyLookup: async ({ keyid, tag }) => {
            const jwk = keys.find(({ kid }: { kid: string }) => kid === keyid);
            if (jwk === undefined || tag !== 'web-bot-auth') return null;
            const key = createPublicKey({ key: jwk, format: 'jwk' });
            return { id: jwk.kid, algs: ['ed25519'], verify: createVerifier(key, 'ed25519') };
          },
          requiredParams: ['created', 'expires', 'keyid', 'tag'],
          requiredFields: ['@method', '@authority', '@path', 'content-digest', 'webhook-id'],
        },
        { method: 'POST', url, headers: headers as Record<string, string> },
      )
      .catch(() => false);
    return verified === true;
  };
