import type { Deps } from '../../http/deps.js';
import type { Context } from '../../http/route.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { type Mail, makeMailOpener, readUnsent } from './store.js';

/** The mails that were not sent, for developers. */

const mails_shown = 100;
const unreadable = { text: 'This mail does not open with SECRET_KEY.', links: [] };

/** Names under which a developer's own browser reaches the service. */
const local_names = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Whether the request was made for this service. A foreign page whose name leads to this machine
 * (DNS rebinding) has the same origin for a browser, but its requests still carry its own name.
 */
const isForUs = (host: string, public_url: string): boolean =>
  [...local_names, new URL(public_url).hostname].includes(host.toLowerCase().replace(/:\d*$/, ''));

export type ShownMail = Mail & { readonly created_at: string };

/** The newest first. Refuses in production. */
export const readOutbox = async (
  ctx: Pick<Context, 'header'>,
  { config, public_url, sql }: Deps,
): Promise<readonly ShownMail[] | Fault> => {
  // The links are credentials: a page of another site, open in a developer's browser, gets none.
  const foreign =
    ['cross-site', 'same-site'].includes(ctx.header('sec-fetch-site')) ||
    !isForUs(ctx.header('host'), public_url);
  if (config.NODE_ENV === 'production' || foreign) return refuse(common_faults.NOT_FOUND);
  const open = makeMailOpener(config);
  const rows = await readUnsent(sql, mails_shown);
  return rows.map((row) => {
    const { recipient: to, subject, created_at } = row;
    return { to, subject, ...(open(row) ?? unreadable), created_at: created_at.toISOString() };
  });
};
