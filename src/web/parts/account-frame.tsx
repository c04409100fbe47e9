import { Type } from '@sinclair/typebox';
import type { ComponentChildren } from 'preact';
import { sessionCookieName } from '../../http/call.js';
import type { Reply, Route } from '../../http/route.js';
import { uuid_schema } from '../../http/schemas.js';
import { renderPage } from '../page.js';
import {
  type Api,
  apiOf,
  fresh_page,
  own_form,
  own_page,
  type PageDeps,
  public_form,
  route,
} from '../page-route.js';
import { Done, Field, type FormFault, FormProblem } from './forms.js';

/** Shared by all account pages: routes, navigation, forms and secrets. */

/** Form fields as strings, each of which may be missing. The API validates them. */
export type Form = Readonly<Record<string, string | undefined>>;
const formOf = (names: readonly string[]) =>
  Type.Object(Object.fromEntries(names.map((name) => [name, Type.Optional(Type.String())])));

export interface Visit {
  readonly api: Api;
  readonly deps: PageDeps;
  /** The query of a page or the fields of a form, together with the ids from the path. */
  readonly form: Form;
}

type Base = typeof own_page | typeof own_form | typeof fresh_page | typeof public_form;

/** Returns the schema of a path's parameters, which are all ids. */
export const idsOf = (path: string) => {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  return Type.Object(Object.fromEntries(names.map((name) => [name, uuid_schema])));
};

const routesOf =
  (base: Base) =>
  (
    id: string,
    path: string,
    names: readonly string[],
    show: (visit: Visit) => Reply | Promise<Reply>,
  ): Route<PageDeps> =>
    route({
      ...base,
      id,
      path,
      cacheable: false,
      params: idsOf(path),
      ...(base.method === 'GET' ? { query: formOf(names) } : { body: formOf(names) }),
      handle: (ctx, deps) => {
        const [query, body] = [ctx.query as Form, ctx.body as Form | undefined];
        return show({ api: apiOf(ctx, deps), deps, form: { ...query, ...body, ...ctx.params } });
      },
    });

/**
 * `own` routes are for a person who is logged in, `entry` routes for everybody. None of them is
 * cached.
 */
export const ownPage = routesOf(own_page);
export const ownForm = routesOf(own_form);
export const entryPage = routesOf(fresh_page);
export const entryForm = routesOf(public_form);

const tabs = {
  overview: ['/account', 'Overview'],
  following: ['/following', 'Following'],
  notifications: ['/account/notifications', 'Notifications'],
  agents: ['/account/agents', 'My agents'],
  webhooks: ['/account/webhooks', 'Webhooks'],
  suggestions: ['/account/suggestions', 'Suggestions'],
  settings: ['/account/settings', 'Settings'],
} as const;

interface Frame {
  readonly title: string;
  readonly fault?: FormFault;
  /** The word from `?done=`, and the success message for each possible word. */
  readonly done?: readonly [word: string | undefined, texts: Readonly<Record<string, string>>];
  readonly children: ComponentChildren;
}

const Titled = ({ title, done, children }: Frame) => (
  <>
    <h1 class="any" dir="auto">
      {title}
    </h1>
    {done !== undefined && <Done word={done[0]} texts={done[1]} />}
    {children}
  </>
);

const Tabs = ({ tab }: { tab: keyof typeof tabs }) => (
  <nav class="tabs account-tabs" aria-label="Account">
    {Object.entries(tabs).map(([id, [href, label]]) => (
      <a key={id} href={href} aria-current={id === tab ? 'true' : undefined}>
        {label}
      </a>
    ))}
    <form method="post" action="/account/logout">
      <button type="submit">Log out</button>
    </form>
  </nav>
);

const renderFrame = (
  deps: PageDeps,
  { title, fault }: Frame,
  { has_person, children }: { has_person: boolean; children: ComponentChildren },
) => renderPage(deps, { title, fault, section: 'account', is_private: true, has_person, children });

/** Renders an account page of the person who is logged in. */
export const renderAccount = (
  deps: PageDeps,
  frame: Frame & {
    readonly tab: keyof typeof tabs;
    readonly back?: readonly [href: string, label: string];
  },
): Reply =>
  renderFrame(deps, frame, {
    has_person: true,
    children: (
      <>
        <Tabs tab={frame.tab} />
        {frame.back !== undefined && (
          <p>
            <a href={frame.back[0]}>{frame.back[1]}</a>
          </p>
        )}
        <Titled {...frame} />
      </>
    ),
  });

/** Renders a page for visitors who are not logged in yet. */
export const renderEntry = (deps: PageDeps, frame: Frame): Reply =>
  renderFrame(deps, frame, {
    has_person: false,
    children: (
      <div class="narrow">
        <Titled {...frame} />
      </div>
    ),
  });

const month_s = 30 * 86_400;

/** Sets the session cookie, which scripts cannot read. Without a token it deletes the cookie. */
export const sessionCookie = ({ public_url }: PageDeps, token = '') => ({
  'Set-Cookie': [
    `${sessionCookieName(public_url)}=${token}; Path=/; HttpOnly; SameSite=Lax`,
    `Max-Age=${token === '' ? 0 : month_s}`,
    ...(public_url.startsWith('https://') ? ['Secure'] : []),
  ].join('; '),
});

export type FieldDef = Pick<Parameters<typeof Field>[0], 'name' | 'label' | 'hint'> &
  Readonly<Partial<Record<'autoComplete' | 'placeholder' | 'min' | 'max', string>>> & {
    readonly type?: 'email' | 'password' | 'number' | 'url';
  } & Readonly<Partial<Record<'minLength' | 'maxLength', number>>> & {
    readonly required?: boolean;
  };

/** Fields shared by several forms. */
export const account_fields = {
  ...({
    email: { name: 'email', label: 'E-mail address', type: 'email', maxLength: 254 },
  } as const),
  name: {
    name: 'name',
    label: 'Name (optional)',
    autoComplete: 'name',
    maxLength: 80,
    required: false,
    hint: 'E-mails address you by this name. Nobody else sees it.',
  },
  password: { name: 'password', label: 'Password', autoComplete: 'current-password' },
  new_password: {
    name: 'password',
    label: 'Password',
    autoComplete: 'new-password',
    minLength: 10,
    hint: 'At least 10 characters. A passphrase of several words works well.',
  },
} as const;

interface FormParts {
  readonly action: string;
  readonly button: string;
  readonly fields?: readonly FieldDef[];
  /** The values that were entered. Passwords and keys are never sent back. */
  readonly form?: Form;
  readonly fault?: FormFault;
  readonly title?: string;
  readonly id?: string;
  /** Names the form if the page has several. */
  readonly act?: string;
  readonly hidden?: Form;
  readonly look?: 'plain' | 'danger';
  /** Hides the form behind this text until it is clicked, to prevent accidental actions. */
  readonly summary?: string;
  readonly children?: ComponentChildren;
}

/** A form in its own card. Problems are shown next to their fields. */
export const FormCard = (parts: FormParts) => {
  const {
    action,
    button,
    fields = [],
    form = {},
    fault = null,
    title,
    id,
    act,
    hidden = {},
  } = parts;
  const card = (
    <form class="card" method="post" action={id === undefined ? action : `${action}#${id}`} id={id}>
      {title !== undefined && <h2>{title}</h2>}
      {fault?.fields === undefined && <FormProblem fault={fault} />}
      {parts.children}
      {Object.entries(hidden).map(
        ([name, value]) => value && <input key={name} type="hidden" name={name} value={value} />,
      )}
      {fields.map((field) => {
        const is_password = /password/.test(field.autoComplete ?? '');
        const usual = is_password ? ({ type: 'password', maxLength: 1_000 } as const) : {};
        const is_secret = is_password || field.type === 'password';
        const value = is_secret ? undefined : form[field.name];
        return (
          <Field key={field.name} required {...usual} {...field} value={value} fault={fault} />
        );
      })}
      <button class={parts.look} type="submit" name={act && 'act'} value={act}>
        {button}
      </button>
    </form>
  );
  if (parts.summary === undefined) return card;
  return (
    <details class="confirmed" open={fault !== null}>
      <summary>{parts.summary}</summary>
      {card}
    </details>
  );
};

/** A list of terms and values. Terms without a value are omitted. */
export const Pairs = ({ of }: { of: readonly (readonly [string, ComponentChildren])[] }) => (
  <dl class="pairs">
    {of.map(([term, value]) =>
      value === null || value === false || value === '' ? null : (
        <>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </>
      ),
    )}
  </dl>
);

/** A secret that is shown only once, with a copy button. */
export const Secret = ({ id, label, value }: { id: string; label: string; value: string }) => (
  <div class="field">
    <strong>{label}</strong>
    <code class="secret" id={id}>
      {value}
    </code>
    <span data-copy={id} />
  </div>
);
