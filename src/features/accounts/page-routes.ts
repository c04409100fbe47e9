import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { reply, replyRaw, routeFor } from '../../http/route.js';
import { common_faults, refuse } from '../../kit/fault.js';
import { link_page, reset_page, verify_page } from '../../web/account-pages.js';
import type { Page } from '../../web/plain-page.js';
import { makeMailOpener, readUnsent } from './mail-store.js';
import { mail_schema } from './schema.js';

const route = routeFor<Deps>();
const tag = 'pages';
const html = 'text/html; charset=utf-8';

/** A page that is the same for everybody. Opening one changes nothing: mail scanners open links. */
const pageRoute = (id: string, path: string, page: Page) =>
  route({
    id,
    method: 'GET',
    path,
    summary: 'A page for people.',
    tag,
    auth: 'public',
    returns: { 200: null },
    produces: 'text/html',
    documented: false,
    handle: () => replyRaw(html, page.html, page.headers),
  });

const mails_shown = 100;
const unreadable = { text: 'This mail does not open with SECRET_KEY.', links: [] };

/** Names under which a developer's own browser reaches the service. */
const local_names = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Whether the request was made for this service. A page whose name was made to lead to this machine
 * (DNS rebinding) is of the same origin to a browser, but still sends its own name.
 */
const isForUs = (host: string, public_url: string): boolean =>
  [...local_names, new URL(public_url).hostname].includes(host.toLowerCase().replace(/:\d*$/, ''));

export const outbox = route({
  id: 'devOutbox',
  method: 'GET',
  path: '/dev/outbox',
  summary: 'The mails not sent, newest first; development mode only.',
  tag,
  auth: 'public',
  documented: false,
  returns: { 200: Type.Array(mail_schema) },
  async handle(ctx, deps) {
    // The links are credentials: a page of another site, open in a developer's browser, gets none.
    const foreign =
      ['cross-site', 'same-site'].includes(ctx.header('sec-fetch-site')) ||
      !isForUs(ctx.header('host'), deps.public_url);
    if (deps.config.NODE_ENV === 'production' || foreign) return refuse(common_faults.NOT_FOUND);
    const open = makeMailOpener(deps.config);
    const rows = await readUnsent(deps.sql, mails_shown);
    const mails = rows.map((row) => {
      const { recipient: to, subject, created_at } = row;
      return { to, subject, ...(open(row) ?? unreadable), created_at: created_at.toISOString() };
    });
    return reply(200, mails, { 'Cache-Control': 'no-store' });
  },
});

export const page_routes = [
  pageRoute('linkPage', '/link', link_page),
  pageRoute('verifyPage', '/auth/verify', verify_page),
  pageRoute('resetPage', '/auth/reset', reset_page),
  outbox,
];
