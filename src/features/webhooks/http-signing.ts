import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { createSignatureSync } from 'http-message-sig';
import { type Config, publicUrl } from '../../config.js';
import { deriveKey } from '../../kit/sealing.js';
import { signature_tag, thumbprintOf } from '../operators/rules.js';

/**
 * Signs deliveries by RFC 9421 with the service's Ed25519 key, for receivers that verify the sender
 * without a shared secret. The key is derived from SECRET_KEY, so every process on every host has
 * the same key and none is stored. Its public part is in the key directory.
 */

/** PKCS #8 prefix of an Ed25519 key, without the key's 32 bytes (RFC 8410). */
const pkcs8_head = Buffer.from('302e020100300506032b657004220420', 'hex');

const label = 'forum';
const life_s = 300;
const covered = [
  '@method',
  '@authority',
  '@path',
  '@query',
  'content-digest',
  'content-type',
  'webhook-id',
  'webhook-timestamp',
  { name: 'signature-agent', parameters: { key: label } },
];

interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Unix seconds. */
  readonly created: number;
}

export const createHttpSigner = (config: Config, secret_key: string) => {
  const seed = deriveKey(secret_key, 'prediction-forum request signatures 1');
  const key = createPrivateKey({
    key: Buffer.concat([pkcs8_head, seed]),
    format: 'der',
    type: 'pkcs8',
  });
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' });
  const keyid = thumbprintOf(x);
  const signer = { algorithm: 'ed25519', sign: (base: Uint8Array) => sign(null, base, key) };
  return {
    /** The key directory of the service. */
    directory: { keys: [{ kty: 'OKP', crv: 'Ed25519', x, kid: keyid, use: 'sig' }] },
    /** Returns the headers that sign a POST. */
    sign({ url, headers, body, created }: Post): Record<string, string> {
      const added = {
        'Content-Digest': `sha-256=:${createHash('sha256').update(body).digest('base64')}:`,
        'Signature-Agent': `${label}="${new URL(publicUrl(config)).origin}"`,
      };
      const fields = Object.entries({ ...headers, ...added }).map(([name, value]) => ({
        name,
        value,
      }));
      const made = createSignatureSync(
        { kind: 'request', method: 'POST', targetUri: url, fields },
        {
          label,
          components: covered,
          signer,
          parameters: { created, expires: created + life_s, keyid, tag: signature_tag },
        },
      );
      return { ...added, 'Signature-Input': made.signatureInput, Signature: made.signature };
    },
  };
};
