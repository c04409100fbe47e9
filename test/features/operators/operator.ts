import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createSigner, httpbis } from 'http-message-signatures';
import type { Test } from 'tap';
import { directory_path, thumbprintOf } from '../../../src/features/operators/rules.js';
import { makeAuthority } from '../../help/authority.js';

/**
 * An operator of agents with a key directory on 127.0.0.1, over TLS. The library that signs its
 * requests is not the one that the service uses.
 */

export interface OperatorKey {
  readonly keyid: string;
  readonly private_key: KeyObject;
  readonly jwk: { readonly kty: string; readonly crv: string; readonly x: string };
}

export const makeKey = (): OperatorKey => {
  const { privateKey: private_key } = generateKeyPairSync('ed25519');
  const { x = '' } = private_key.export({ format: 'jwk' });
  return { private_key, keyid: thumbprintOf(x), jwk: { kty: 'OKP', crv: 'Ed25519', x } };
};

/** The key pair of RFC 9421, appendix B.1.4. */
export const rfc_key: OperatorKey = {
  keyid: 'poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U',
  jwk: { kty: 'OKP', crv: 'Ed25519', x: 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs' },
  private_key: createPrivateKey({
    key: {
      kty: 'OKP',
      crv: 'Ed25519',
      x: 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs',
      d: 'n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU',
    },
    format: 'jwk',
  }),
};

interface Signing {
  readonly method?: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly origin: string;
  readonly key: OperatorKey;
  readonly fields?: readonly string[];
  readonly tag?: string;
  /** Seconds relative to now. */
  readonly created?: number;
  readonly expires?: number;
}

export const usual_fields = ['@authority', 'signature-agent;key="op"', 'x-api-key'];

/** The headers of a signed request. */
export const signRequest = async (signing: Signing): Promise<Record<string, string>> => {
  const { method = 'GET', url, headers, origin, key, fields = usual_fields } = signing;
  const { tag = 'web-bot-auth', created = 0, expires = 300 } = signing;
  const at = (seconds: number) => new Date(Date.now() + seconds * 1_000);
  const is_string = !fields.includes('signature-agent;key="op"');
  const agent = is_string ? `"${origin}"` : `op="${origin}"`;
  const signed = await httpbis.signMessage(
    {
      key: createSigner(key.private_key, 'ed25519', key.keyid),
      name: 'op',
      fields: [...fields],
      params: ['created', 'expires', 'keyid', 'tag'],
      paramValues: { created: at(created), expires: at(expires), tag },
    },
    { method, url, headers: { ...headers, 'signature-agent': agent } },
  );
  return Object.fromEntries(
    Object.entries(signed.headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
  );
};

export interface DirectoryAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

export const directoryOf = (...keys: readonly OperatorKey[]): DirectoryAnswer => ({
  body: JSON.stringify({ keys: keys.map(({ jwk, keyid: kid }) => ({ ...jwk, kid, use: 'sig' })) }),
});

/** A directory whose answer the test sets. If the answer is null, the directory stays silent. */
export const startOperator = async (t: Test, ...keys: readonly OperatorKey[]) => {
  const { ca_pem, issue } = await makeAuthority();
  const folder = mkdtempSync(path.join(tmpdir(), 'operator-'));
  const ca_file = path.join(folder, 'ca.pem');
  writeFileSync(ca_file, ca_pem);
  const state = { asked: 0, answer: directoryOf(...keys) as DirectoryAnswer | null };
  const server: Server = createServer(
    await issue({ names: ['127.0.0.1'] }),
    (request, response) => {
      state.asked += 1;
      const { answer } = state;
      if (answer === null) return;
      const is_here = request.url === directory_path;
      response.writeHead(is_here ? (answer.status ?? 200) : 404, answer.headers ?? {});
      response.end(is_here ? answer.body : '');
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  });
  const { port } = server.address() as AddressInfo;
  const env = { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: ca_file };
  return { state, env, origin: `https://127.0.0.1:${port}` };
};

export type Operator = Awaited<ReturnType<typeof startOperator>>;
