import type { Deps } from '../../http/deps.js';
import type { Context } from '../../http/route.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { type Mail, makeMailOpener, readUnsent } from './store.js';

/** The outbox: unsent e-mails, shown to developers. */

const mails_shown = 100;
const unreadable = { text: 'This e-mail was sealed with a different SECRET_KEY.', links: [] };

/** Host names that a developer's own browser uses for the service. */
const local_names = ['localhost', '127.0.0.1', '[::1]'];

/**
 * True if the request names this service as its host. With DNS rebinding, a foreign name resolves
 * to this machine and the browser sees one origin, but the request still carries the foreign name.
 */
const isForUs = (host: string, public_url: string): boolean =>
  [...local_names, new URL(public_url).hostname].includes(host.toLowerCase().replace(/:\d*$/, ''));

export type ShownMail = Mail & { readonly created_at: string };

/** Returns unsent e-mails, newest first. Refuses in production. */
export const readOutbox = async (
  ctx: Pick<Context, 'header'>,
  { config, public_url, sql }: Deps,
): Promise<readonly ShownMail[] | Fault> => {
  // The links are credentials. A page of another site in a developer's browser must not read them.
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
