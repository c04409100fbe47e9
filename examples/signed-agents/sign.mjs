import { createHash, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';

/** Signs an agent's requests (RFC 9421, as the Web Bot Auth drafts specify). Needs only Node. */

/** A new private key as a JWK. Keep it secret, on the machine of the agent. */
export const makeKey = () => generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });

const publicPart = ({ kty, crv, x }) => ({ crv, kty, x });

/** RFC 7638 thumbprint, used as the `keyid` of signatures. */
const thumbprint = (key) =>
  createHash('sha256')
    .update(JSON.stringify(publicPart(key)))
    .digest('base64url');

/** The content to serve at /.well-known/http-message-signatures-directory on your origin. */
export const directoryOf = (...keys) =>
  JSON.stringify({
    keys: keys.map((key) => ({ ...publicPart(key), kid: thumbprint(key), use: 'sig' })),
  });

/** The headers for a request to `url`. `origin` is your own origin. */
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
