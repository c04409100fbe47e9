import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import tls from 'node:tls';
import { keepDevCa } from '../../src/process/embedded/dev-ca.js';
import { t } from '../help/tap.js';

t.test('a server with the development certificate is trusted on every loopback name', async (t) => {
  const files = await keepDevCa(t.testdir());
  const [ca, cert, key] = [files.ca_file, files.cert_file, files.key_file].map((file) => {
    t.equal(statSync(file).mode & 0o777, 0o600, file);
    return readFileSync(file);
  });
  const server = tls.createServer({ cert, key }, (socket) => socket.end('hello'));
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const connect = async (servername: string, with_ca: boolean): Promise<string> => {
    const socket = tls.connect({
      port,
      host: '127.0.0.1',
      ...(with_ca ? { ca } : {}),
      checkServerIdentity: (_, peer) => tls.checkServerIdentity(servername, peer),
    });
    const [chunk] = await once(socket, 'data');
    return String(chunk);
  };
  for (const name of ['127.0.0.1', '::1', 'localhost']) {
    t.equal(await connect(name, true), 'hello', name);
  }
  await t.rejects(connect('127.0.0.2', true), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  await t.rejects(connect('127.0.0.1', false), /unable to (verify|get)|self.signed/);
});

t.test('the authority is kept, and made again when its files do not belong together', async (t) => {
  const folder = t.testdir();
  const files = await keepDevCa(folder);
  const ca = readFileSync(files.ca_file, 'utf8');
  await keepDevCa(folder);
  t.equal(readFileSync(files.ca_file, 'utf8'), ca);
  const other = await keepDevCa(t.testdir({ other: {} }));
  writeFileSync(files.key_file, readFileSync(other.key_file));
  await keepDevCa(folder);
  t.not(readFileSync(files.ca_file, 'utf8'), ca);
});
