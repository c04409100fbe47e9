import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/**
 * Encrypts secrets at rest: AES-256-GCM under a key derived from SECRET_KEY for one purpose. The
 * sealed bytes are bound to the name of the secret, so a copy in another row cannot be opened.
 *
 * Layout: version (1 byte) · nonce (12) · tag (16) · ciphertext.
 */

const version = 1;
const nonce_bytes = 12;
const tag_bytes = 16;
const header_bytes = 1 + nonce_bytes + tag_bytes;
const algorithm = 'aes-256-gcm';

/** Derives 32 bytes for one purpose only. The text `purpose` ends with a version number. */
export const deriveKey = (secret_key: string, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret_key, '', purpose, 32));

export type Sealer = ReturnType<typeof createSealer>;

export const createSealer = (secret_key: string, purpose: string) => {
  const key = deriveKey(secret_key, purpose);

  const seal = (name: string, secret: string): Buffer => {
    const nonce = randomBytes(nonce_bytes);
    const cipher = createCipheriv(algorithm, key, nonce);
    cipher.setAAD(Buffer.from(name));
    const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.of(version), nonce, cipher.getAuthTag(), text]);
  };

  /** Returns null if the bytes were sealed under another key or name, or are damaged. */
  const open = (name: string, sealed: Uint8Array): string | null => {
    const bytes = Buffer.from(sealed);
    if (bytes.length < header_bytes || bytes[0] !== version) return null;
    const nonce = bytes.subarray(1, 1 + nonce_bytes);
    const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tag_bytes });
    decipher.setAAD(Buffer.from(name));
    decipher.setAuthTag(bytes.subarray(1 + nonce_bytes, header_bytes));
    try {
      const text = Buffer.concat([decipher.update(bytes.subarray(header_bytes)), decipher.final()]);
      return text.toString('utf8');
    } catch {
      return null;
    }
  };

  return { seal, open };
};
