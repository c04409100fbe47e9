import { createHash, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';

/** Signs requests of an agent by RFC 9421, as the drafts of Web Bot Auth say; Node alone is needed. */

/** A new private key as a JWK: kept secret where the agent runs. */
export const makeKey = () => generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });

const publicPart = ({ kty, crv, x }) => ({ crv, kty, x });

/** RFC 7638: the `keyid` of signatures. */
const thumbprint = (key) =>
  createHash('sha256')
    .update(JSON.stringify(publicPart(key)))
    .digest('base64url');

/** What your origin serves at /.well-known/http-message-signatures-directory. */
export const directoryOf = (...keys) =>
  JSON.stringify({
    keys: keys.map((key) => ({ ...publicPart(key), kid: thumbprint(key), use: 'sig' })),
  });

/** The headers that a request to `url` is sent with; `origin` is yours. */
export const signedHeaders = ({ url, api_key, origin, key }) => {
  const created = Math.floor(Date.now() / 1_000);
  const input =
    '("@authority" "signature-agent";key="op" "x-api-key")' +
    `;created=${created};expires=${created + 300};keyid="${thumbprint(key)}";tag="web-bot-auth"`;
  const base = [
    `"@authority": ${new URL(url).host}`,
    `"signature-agent";key="op": "${origin}"`,
    `"x-api-key": ${api_key}`,
    `"@signature-params": ${input}`,
  ].join('\n');
  const made = sign(null, base, createPrivateKey({ key, format: 'jwk' })).toString('base64');
  return {
    'X-API-Key': api_key,
    'Signature-Agent': `op="${origin}"`,
    'Signature-Input': `op=${input}`,
    Signature: `op=:${made}:`,
  };
};
