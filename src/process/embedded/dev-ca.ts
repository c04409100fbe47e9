import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { writeWhole } from './data-dir.js';

const day_ms = 24 * 60 * 60 * 1000;
const valid_ms = 3_650 * day_ms;

/**
 * The certificate and key of a server on 127.0.0.1, ::1 or localhost, as PEM. The certificate is
 * its own authority and can sign no other. A newcomer who trusts it can receive webhooks, which are
 * always HTTPS, on this machine.
 */
export const makeDevCa = async () => {
  // Imported here, because loading it takes 0.1 s and few starts make a certificate.
  const { generate } = await import('selfsigned');
  const { cert, private: key } = await generate([{ name: 'commonName', value: '127.0.0.1' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    // Clients whose clock is a little behind must accept the certificate.
    notBeforeDate: new Date(Date.now() - day_ms),
    notAfterDate: new Date(Date.now() + valid_ms),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 7, ip: '127.0.0.1' },
          { type: 7, ip: '::1' },
          { type: 2, value: 'localhost' },
        ],
      },
    ],
  });
  return { ca: cert, cert, key };
};

const filesIn = (data_dir: string) => ({
  ca_file: path.join(data_dir, 'dev-ca.pem'),
  cert_file: path.join(data_dir, 'dev-cert.pem'),
  key_file: path.join(data_dir, 'dev-key.pem'),
});

export type DevCaFiles = ReturnType<typeof filesIn>;

/** Returns the files in the data folder. If one is missing or about to expire, makes all again. */
export const keepDevCa = async (data_dir: string): Promise<DevCaFiles> => {
  const files = filesIn(data_dir);
  if (areValid(files)) return files;
  const made = await makeDevCa();
  writeWhole(files.key_file, made.key);
  writeWhole(files.cert_file, made.cert);
  writeWhole(files.ca_file, made.ca);
  return files;
};

const areValid = ({ ca_file, cert_file, key_file }: DevCaFiles): boolean => {
  try {
    const ca = new X509Certificate(readFileSync(ca_file));
    const leaf = new X509Certificate(readFileSync(cert_file));
    const soon = Date.now() + 30 * day_ms;
    return (
      leaf.verify(ca.publicKey) &&
      new Date(leaf.validTo).getTime() > soon &&
      leaf.checkPrivateKey(createPrivateKey(readFileSync(key_file)))
    );
  } catch {
    return false;
  }
};
