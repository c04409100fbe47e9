import { assetPath } from '../../src/web/assets.js';
import { startApp } from '../help/app.js';
import { t } from '../help/tap.js';

t.test(
  'style and scripts are kept for ever under an address that names what they hold',
  async (t) => {
    const app = await startApp(t, { roles: ['api'] });
    for (const [name, type] of [
      ['style.css', 'text/css; charset=utf-8'],
      ['site.js', 'text/javascript; charset=utf-8'],
      ['live.js', 'text/javascript; charset=utf-8'],
    ] as const) {
      const { status, headers, body } = await app.call('GET', assetPath(name));
      t.equal(status, 200, name);
      t.equal(headers.get('content-type'), type);
      t.equal(headers.get('cache-control'), 'public, max-age=31536000, immutable');
      t.notMatch(body, /sourceMappingURL/);
    }
    const old = assetPath('site.js').replace(/[0-9a-f]{12}/, '000000000000');
    t.equal((await app.call('GET', old)).status, 404, 'an old address names nothing');
    t.equal((await app.call('GET', assetPath('site.js').replace('site', 'nix'))).status, 404);
    t.throws(() => assetPath('nix.js'));
  },
);

t.test('a browser finds an icon where it looks for one', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  for (const path of ['/favicon.svg', '/favicon.ico']) {
    const { status, headers } = await app.call('GET', path);
    t.equal(status, 200);
    t.equal(headers.get('content-type'), 'image/svg+xml');
  }
});
