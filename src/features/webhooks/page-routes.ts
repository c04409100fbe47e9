import { readFileSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import type { Config } from '../../config.js';
import type { Deps } from '../../kit/deps.js';
import { client_limits } from '../../kit/guarded-client/client.js';
import { replyRaw, routeFor } from '../../kit/http/route.js';
import { renderWebhookPage } from '../../web/webhook-page.js';
import { catalogue } from '../events/index.js';
import { retry_steps_ms } from './rules.js';
import { replay_days } from './schema.js';

/** The page about webhooks; its examples are the files that the tests run. */

const examples = [
  ['TypeScript', 'verify.ts'],
  ['Python', 'verify.py'],
  ['Go', 'verify.go'],
] as const;

const readExample = (file: string): string =>
  readFileSync(new URL(`../../../../examples/webhooks/${file}`, import.meta.url), 'utf8');

interface Made {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

const makePage = (prefix: string): Made => {
  const { html, headers } = renderWebhookPage({
    prefix,
    retry_steps_ms,
    replay_days,
    wall_ms: client_limits.wall_ms,
    events: catalogue.map(({ name, about }) => `${name}: ${about}`),
    examples: examples.map(([language, file]) => ({ language, code: readExample(file) })),
  });
  const { 'Cache-Control': _, ...others } = headers;
  return { html, headers: others };
};

const pages = new WeakMap<Config, Made>();
const pageFor = (config: Config): Made => {
  const page = pages.get(config) ?? makePage(config.WEBHOOK_HEADER_PREFIX);
  pages.set(config, page);
  return page;
};

export const webhook_page = routeFor<Deps>()({
  id: 'webhookDocs',
  method: 'GET',
  path: '/docs/webhooks',
  summary: 'A page about webhooks: what arrives, and how to verify it in three languages',
  tag: 'docs',
  auth: 'public',
  returns: { 200: Type.String() },
  cacheable: true,
  produces: 'text/html',
  handle: (_ctx, { config }) => {
    const { html, headers } = pageFor(config);
    return replyRaw('text/html; charset=utf-8', html, headers);
  },
});
