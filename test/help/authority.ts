import { isIP } from 'node:net';
import { generate } from 'selfsigned';

/** A certificate authority for one test, with certificates signed by it and by others. */

export interface Pair {
  readonly key: string;
  readonly cert: string;
}

interface LeafOptions {
  /** DNS names and IP addresses. */
  readonly names: readonly string[];
  /** The certificate expired an hour ago. */
  readonly is_expired?: boolean;
}

const hour_ms = 3_600_000;
const ec = { keyType: 'ec', algorithm: 'sha256' } as const;

const makeLeaf = async (options: LeafOptions, ca?: Pair): Promise<Pair> => {
  const { names, is_expired = false } = options;
  const now_ms = Date.now();
  const made = await generate([{ name: 'commonName', value: 'receiver' }], {
    ...ec,
    ...(ca === undefined ? {} : { ca }),
    notBeforeDate: new Date(now_ms - 48 * hour_ms),
    notAfterDate: new Date(now_ms + (is_expired ? -1 : 48) * hour_ms),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: names.map((name) =>
          isIP(name) === 0 ? { type: 2, value: name } : { type: 7, ip: name },
        ),
      },
    ],
  });
  return { key: made.private, cert: made.cert };
};

/** A self-signed certificate. */
export const makeSelfSigned = (names: readonly string[]): Promise<Pair> => makeLeaf({ names });

export const makeAuthority = async () => {
  const ca = await generate([{ name: 'commonName', value: 'Receiver Test Authority' }], {
    ...ec,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const signer = { key: ca.private, cert: ca.cert };
  return { ca_pem: ca.cert, issue: (options: LeafOptions) => makeLeaf(options, signer) };
};
