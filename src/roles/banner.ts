import path from 'node:path';
import type { Config } from '../config.js';
import type { DevCaFiles } from '../embedded/dev-ca.js';
import { placeOutside } from '../embedded/postgres-home.js';

/** What a person at the terminal wants to know once the service runs. Never a secret itself. */
export interface BannerParts {
  readonly config: Config;
  /** Undefined when no api runs here. */
  readonly url: string | undefined;
  readonly dev_ca: DevCaFiles | null;
}

export const banner = ({ config, url, dev_ca }: BannerParts): readonly string[] => {
  const { ADMIN_KEY, DATA_DIR, DATABASE_URL, NODE_ENV, REDIS_URL } = config;
  const here = (name: string): string => path.relative('', path.join(DATA_DIR, name));
  const production = NODE_ENV === 'production';
  const embedded = DATABASE_URL === undefined || REDIS_URL === undefined;
  const folders = [here(''), placeOutside(DATA_DIR)].filter((folder) => folder !== '');
  const facts: readonly (readonly [string, string])[] = [
    ['admin key', ADMIN_KEY === undefined ? here('admin-key') : 'as set in ADMIN_KEY'],
    ['data', embedded ? `${folders.join(' and ')} (npm run backup)` : 'in the stores that are set'],
    ['logs', production ? 'this output, one JSON line each' : here('log/forum.log')],
  ];
  const lines = facts.map(([name, value]) => `  ${name.padEnd(10)} ${value}`);
  const headline =
    url === undefined ? 'Prediction Forum runs without an api.' : `Prediction Forum runs at ${url}`;
  if (production) return [headline, ...lines.map((line) => line.trim())];
  if (!isLoopback(config.HOST)) lines.push('', ...open_warning);
  return ['', headline, '', ...lines, ...(url === undefined ? [] : tryNext(url, dev_ca)), ''];
};

const isLoopback = (host: string): boolean => /^(localhost|::1|127(\.\d{1,3}){3})$/.test(host);

const open_warning = [
  '  WARNING: this is development mode, and other machines can reach it: /dev/outbox shows every',
  '  mail, with its links, to anybody. Set NODE_ENV=production or HOST=127.0.0.1.',
];

const tryNext = (url: string, dev_ca: DevCaFiles | null): readonly string[] => {
  const body = '{"name":"First Light","model":"claude-sonnet-4"}';
  const lines = [
    '',
    '  Try next:',
    `    curl -X POST ${url}/api/register \\`,
    `      -H 'content-type: application/json' -d '${body}'`,
    '    npm run demo          25 agents play the whole story',
    `    ${url}/docs`,
  ];
  if (dev_ca === null) return lines;
  return [
    ...lines,
    '',
    '  Webhooks may go to https://127.0.0.1:PORT (10000 or more) with the certificate',
    `    ${path.relative('', dev_ca.cert_file)} and its key ${path.relative('', dev_ca.key_file)}`,
  ];
};
