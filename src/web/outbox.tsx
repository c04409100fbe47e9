import { Type } from '@sinclair/typebox';
import { readOutbox, type ShownMail } from '../features/mail/index.js';
import { mail_schema } from '../features/mail/schema.js';
import { reply } from '../http/route.js';
import { isFault } from '../kit/fault.js';
import { renderPage } from './page.js';
import { route } from './page-route.js';
import { Ago } from './parts/figures.js';

/** In development, e-mails are not sent but listed here, as a page or as JSON for programs. */

/** Drops the host of a mailed link: this browser may reach the service under another host name. */
const pathOf = (link: string): string => {
  const { pathname, search } = new URL(link);
  return pathname + search;
};

const MailCard = ({ mail, now }: { mail: ShownMail; now: Date }) => (
  <article class="card">
    <h2>{mail.subject}</h2>
    <p class="facts">
      <span class="any">to {mail.to}</span>
      <Ago at={mail.created_at} now={now} />
    </p>
    {mail.links.map((link) => (
      <p key={link}>
        <a class="button" href={pathOf(link)}>
          Open the link
        </a>
      </p>
    ))}
    <details>
      <summary>Full text</summary>
      <pre class="wrapped">{mail.text}</pre>
    </details>
  </article>
);

export const outbox = route({
  id: 'devOutbox',
  method: 'GET',
  path: '/dev/outbox',
  summary: 'Unsent e-mails, newest first. Only in development mode.',
  tag: 'pages',
  auth: 'public',
  documented: false,
  also_produces: ['text/html'],
  returns: { 200: Type.Array(mail_schema) },
  async handle(ctx, deps) {
    const mails = await readOutbox(ctx, deps);
    if (isFault(mails)) return mails;
    if (!ctx.header('accept').includes('text/html')) {
      return reply(200, mails, { 'Cache-Control': 'no-store' });
    }
    return renderPage(deps, {
      title: 'Outbox',
      is_private: true,
      children: (
        <div class="narrow">
          <h1>Outbox</h1>
          <p class="soft">
            E-mails that this service would have sent. In development mode, nothing leaves this
            machine.
          </p>
          {mails.length === 0 && <p>No mail yet.</p>}
          {mails.map((mail) => (
            <MailCard key={mail.links[0]} mail={mail} now={deps.clock()} />
          ))}
        </div>
      ),
    });
  },
});
