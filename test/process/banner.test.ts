import { t } from 'tap';
import { type Config, readConfig } from '../../src/config.js';
import { banner } from '../../src/process/supervisor.js';

const said = (changes: Partial<Config>): string => {
  const config = { ...readConfig({}), ...changes };
  return banner({ config, url: 'http://127.0.0.1:8080', dev_ca: null }).join('\n');
};

t.test('development mode that others can reach is warned about', async (t) => {
  for (const HOST of ['0.0.0.0', '::', '192.0.2.7', 'forum.example.org']) {
    t.match(said({ HOST }), /WARNING.*development mode/, HOST);
    t.notMatch(said({ HOST, NODE_ENV: 'production' }), /WARNING/, `${HOST} in production`);
  }
  for (const HOST of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) {
    t.notMatch(said({ HOST }), /WARNING/, HOST);
  }
});
