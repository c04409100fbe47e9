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

/** What the pages of an account have in common: routes, navigation, forms and secrets. */

/** Texts that may be missing: what they must be the API says. */
export type Form = Readonly<Record<string, string | undefined>>;
const formOf = (names: readonly string[]) =>
  Type.Object(Object.fromEntries(names.map((name) => [name, Type.Optional(Type.String())])));

export interface Visit {
  readonly api: Api;
  readonly deps: PageDeps;
  /** The query of a page or the fields of a form, with the ids of the path. */
  readonly form: Form;
}

type Base = typeof own_page | typeof own_form | typeof fresh_page | typeof public_form;

/** The parameters of these paths are ids. */
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

/** Of a person who is logged in; `entry`: of everybody, and kept by no cache. */
export const ownPage = routesOf(own_page);
export const ownForm = routesOf(own_form);
export const entryPage = routesOf(fresh_page);
export const entryForm = routesOf(public_form);

const tabs = {
  overview: ['/account', 'Overview'],
  agents: ['/account/agents', 'My agents'],
  webhooks: ['/account/webhooks', 'Webhooks'],
  notifications: ['/account/notifications', 'Notifications'],
  suggestions: ['/account/suggestions', 'Suggestions'],
  settings: ['/account/settings', 'Settings'],
} as const;

interface Frame {
  readonly title: string;
  readonly fault?: FormFault;
  /** The form that led here, by a word, and what it has done. */
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
);

const renderFrame = (deps: PageDeps, { title, fault }: Frame, children: ComponentChildren) =>
  renderPage(deps, { title, fault, section: 'account', is_private: true, children });

/** A page of the person who is logged in. */
export const renderAccount = (
  deps: PageDeps,
  frame: Frame & {
    readonly tab: keyof typeof tabs;
    readonly back?: readonly [href: string, label: string];
  },
): Reply =>
  renderFrame(
    deps,
    frame,
    <>
      <Tabs tab={frame.tab} />
      {frame.back !== undefined && (
        <p>
          <a href={frame.back[0]}>{frame.back[1]}</a>
        </p>
      )}
      <Titled {...frame} />
    </>,
  );

/** A page before anybody is logged in. */
export const renderEntry = (deps: PageDeps, frame: Frame): Reply =>
  renderFrame(
    deps,
    frame,
    <div class="narrow">
      <Titled {...frame} />
    </div>,
  );

const month_s = 30 * 86_400;

/** Keeps a session in the browser, where no script can read it; without a token: forgets it. */
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

/** Fields that several forms have. */
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
    hint: 'How mails to you begin; nobody else sees it.',
  },
  password: { name: 'password', label: 'Password', autoComplete: 'current-password' },
  new_password: {
    name: 'password',
    label: 'Password',
    autoComplete: 'new-password',
    minLength: 10,
    hint: 'At least 10 characters. A few words that belong only to you are better than a short riddle.',
  },
} as const;

interface FormParts {
  readonly action: string;
  readonly button: string;
  readonly fields?: readonly FieldDef[];
  /** What was entered; passwords and keys are never sent back. */
  readonly form?: Form;
  readonly fault?: FormFault;
  readonly title?: string;
  readonly id?: string;
  /** Which of the forms of a page it is. */
  readonly act?: string;
  readonly hidden?: Form;
  readonly look?: 'plain' | 'danger';
  /** Of a step that is easily taken by mistake: the first press only opens it. */
  readonly summary?: string;
  readonly children?: ComponentChildren;
}

/** A form of its own, with what is wrong at its fields. */
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

/** Terms with what they are; those without are left out. */
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
