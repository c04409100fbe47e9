import { Type } from '@sinclair/typebox';
import type { ComponentChildren } from 'preact';
import { session_cookie } from '../../http/request.js';
import type { Reply } from '../../http/route.js';
import { type PageParts, renderPage } from '../page.js';
import type { PageDeps } from '../page-route.js';

/** What the pages of an account have in common: their navigation, forms and secrets. */

const tabs = {
  overview: ['/account', 'Overview'],
  agents: ['/account/agents', 'My agents'],
  webhooks: ['/account/webhooks', 'Webhooks'],
  notifications: ['/account/notifications', 'Notifications'],
  suggestions: ['/account/suggestions', 'Suggestions'],
  settings: ['/account/settings', 'Settings'],
} as const;
export type Tab = keyof typeof tabs;

/** A page of the person who is logged in. */
export const renderAccount = (
  deps: PageDeps,
  { tab, children, ...parts }: Omit<PageParts, 'section' | 'is_private'> & { readonly tab: Tab },
): Reply =>
  renderPage(deps, {
    ...parts,
    section: 'account',
    is_private: true,
    children: (
      <>
        <nav class="choices account-tabs" aria-label="Account">
          {Object.entries(tabs).map(([id, [href, label]]) => (
            <a key={id} href={href} aria-current={id === tab ? 'true' : undefined}>
              {label}
            </a>
          ))}
          <form method="post" action="/account/logout">
            <button type="submit">Log out</button>
          </form>
        </nav>
        {children}
      </>
    ),
  });

/** A page before anybody is logged in. */
export const renderEntry = (
  deps: PageDeps,
  parts: Omit<PageParts, 'section' | 'is_private'>,
): Reply =>
  renderPage(deps, {
    ...parts,
    ...{ section: 'account', is_private: true },
    children: <div class="narrow">{parts.children}</div>,
  });

/** The body of a form: texts, all of which may be missing; what they must be the API says. */
export const formOf = (...names: readonly string[]) =>
  Type.Object(Object.fromEntries(names.map((name) => [name, Type.Optional(Type.String())])));
export type Form = Readonly<Record<string, string | undefined>>;

const month_s = 30 * 86_400;

/** Keeps a session in the browser, where no script can read it; without a token: forgets it. */
export const sessionCookie = ({ public_url }: PageDeps, token = '') => ({
  'Set-Cookie': [
    `${session_cookie}=${token}; Path=/; HttpOnly; SameSite=Lax`,
    `Max-Age=${token === '' ? 0 : month_s}`,
    ...(public_url.startsWith('https://') ? ['Secure'] : []),
  ].join('; '),
});

/** A secret that is shown once, with a button that copies it. */
export const Secret = ({ id, label, value }: { id: string; label: string; value: string }) => (
  <div class="field">
    <strong>{label}</strong>
    <code class="secret" id={id}>
      {value}
    </code>
    <span data-copy={id} />
  </div>
);

/** A step that is easily taken by mistake: the first press only opens it. */
export const Confirmed = ({
  id,
  label,
  open,
  children,
}: {
  id?: string;
  label: string;
  open?: boolean;
  children: ComponentChildren;
}) => (
  <details class="confirmed" id={id} open={open}>
    <summary>{label}</summary>
    {children}
  </details>
);
