import { readFileSync } from 'node:fs';
import type { Config } from '../../config.js';
import type { ClientOptions } from './client.js';

/** The addresses that calls to strangers may reach. */
export const outboundOptions = (config: Config): ClientOptions => ({
  allow_cidrs: config.WEBHOOK_ALLOW_CIDRS,
  dns_servers: config.WEBHOOK_DNS_SERVERS,
  ...(config.WEBHOOK_CA_FILE === undefined
    ? {}
    : { ca_pem: readFileSync(config.WEBHOOK_CA_FILE, 'utf8') }),
});
