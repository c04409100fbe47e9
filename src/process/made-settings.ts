import path from 'node:path';
import type { Config } from '../config.js';
import { keepSecret } from './embedded/data-dir.js';
import { type DevCaFiles, keepDevCa } from './embedded/dev-ca.js';

/** Settings that the service makes itself if they are missing: keys and the certificate. */

export const isLoopback = (host: string): boolean =>
  /^(localhost|::1|127(\.\d{1,3}){3})$/.test(host);

/** Lets a newcomer receive webhooks on one machine. Elsewhere, the operator sets the addresses. */
export const openDevCa = async (config: Config): Promise<DevCaFiles | null> => {
  const wanted =
    config.NODE_ENV === 'development' &&
    isLoopback(config.HOST) &&
    config.WEBHOOK_ALLOW_CIDRS.length === 0 &&
    config.WEBHOOK_CA_FILE === undefined;
  return wanted ? keepDevCa(config.DATA_DIR) : null;
};

export const caSettings = (dev_ca: DevCaFiles | null): Record<string, string> =>
  dev_ca === null
    ? {}
    : { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8,::1/128', WEBHOOK_CA_FILE: dev_ca.ca_file };

export const keySettings = ({
  ADMIN_KEY,
  SECRET_KEY,
  DATA_DIR,
}: Config): Record<string, string> => ({
  ADMIN_KEY: ADMIN_KEY ?? keepSecret(path.join(DATA_DIR, 'admin-key')),
  SECRET_KEY: SECRET_KEY ?? keepSecret(path.join(DATA_DIR, 'secret-key')),
});

/** Returns `env` with the settings that the service made, each under one name only. */
export const layOver = (
  env: NodeJS.ProcessEnv,
  made: Readonly<Record<string, string>>,
): NodeJS.ProcessEnv => {
  const result = { ...env };
  for (const [name, value] of Object.entries(made)) {
    delete result[`PF_${name}`];
    if (!name.endsWith('_FILE')) {
      delete result[`${name}_FILE`];
      delete result[`PF_${name}_FILE`];
    }
    result[name] = value;
  }
  return result;
};
