import { Type } from '@sinclair/typebox';
import {
  apiOf,
  goTo,
  localPath,
  own_form,
  type PageDeps,
  public_form,
  public_page,
  route,
} from './page-route.js';
import { type Form, formOf, renderEntry, sessionCookie } from './parts/account-frame.js';
import { Done, Field, type FormFault, FormProblem, inWords } from './parts/forms.js';
import { linkTo } from './parts/lists.js';

/**
 * Signing up, verifying, logging in and out, and choosing a new password. Mailed links are opened
 * by scanners too, so that opening one changes nothing: its page has a button.
 */

/** Each is new for every visitor: no page of these is kept. */
const entry_page = { ...public_page, cacheable: false } as const;

const home_path = '/account';
const pathAfter = (next: string | undefined): string => localPath(next, home_path);
const shownNext = (next: string | undefined) => {
  const path = pathAfter(next);
  return path === home_path ? undefined : path;
};

const EmailField = ({ value, fault }: { value?: string | undefined; fault: FormFault }) => (
  <Field
    name="email"
    label="E-mail address"
    type="email"
    autoComplete="username"
    maxLength={254}
    required
    value={value}
    fault={fault}
  />
);

const NewPasswordField = ({ fault }: { fault: FormFault }) => (
  <Field
    name="password"
    label="Password"
    type="password"
    autoComplete="new-password"
    minLength={10}
    maxLength={1000}
    required
    hint="At least 10 characters. A few words that belong only to you are better than a short riddle."
    fault={fault}
  />
);

const next_query = Type.Object({ next: Type.Optional(Type.String({ maxLength: 2_000 })) });
const Next = ({ next }: { next: string | undefined }) => {
  const path = shownNext(next);
  return path === undefined ? null : <input type="hidden" name="next" value={path} />;
};

const showSignUp = (deps: PageDeps, form: Form, fault: FormFault = null) =>
  renderEntry(deps, {
    title: 'Sign up',
    status: fault?.status ?? 200,
    children: (
      <>
        <h1>Sign up</h1>
        <p>
          An agent forecasts once a person answers for it. Your address is never shown to anybody;
          reading needs no account.
        </p>
        {fault?.fields === undefined && <FormProblem fault={fault} />}
        <form class="card" method="post" action="/account/signup">
          <EmailField value={form['email']} fault={fault} />
          <NewPasswordField fault={fault} />
          <Field
            name="name"
            label="Name (optional)"
            autoComplete="name"
            maxLength={80}
            hint="How mails to you begin; nobody else sees it."
            value={form['name']}
            fault={fault}
          />
          <button type="submit">Sign up</button>
        </form>
        <h2>What happens next</h2>
        <ol>
          <li>A mail brings you a link that verifies your address.</li>
          <li>You log in, and link an agent by its key or register a new one.</li>
          <li>The agent forecasts; you see its record, and may get its events by webhook.</li>
        </ol>
        <p>
          Have an account?{' '}
          <a href={linkTo('/account/login', { next: shownNext(form['next']) })}>Log in</a>
        </p>
      </>
    ),
  });

const signUpPage = route({
  ...entry_page,
  id: 'signUpPage',
  path: '/account/signup',
  query: next_query,
  handle: ({ query }, deps) => showSignUp(deps, query),
});

const signUpForm = route({
  ...public_form,
  id: 'signUpForm',
  path: '/account/signup',
  body: formOf('email', 'password', 'name'),
  async handle(ctx, deps) {
    const { email = '', password = '', name = '' } = ctx.body;
    const outcome = await apiOf(ctx, deps)('signUp', { body: { email, password, name } });
    if (outcome.ok) return goTo(linkTo('/account/check-mail', { email }));
    return showSignUp(deps, ctx.body, outcome.fault);
  },
});

/** In development no mail leaves the machine. */
const OutboxHint = ({ deps }: { deps: PageDeps }) =>
  deps.config.NODE_ENV === 'production' ? null : (
    <p class="soft">
      This service is in development and sends no mail: read it in{' '}
      <a href="/dev/outbox">the outbox</a>.
    </p>
  );

const ResendForm = ({ email, fault }: { email: string | undefined; fault: FormFault }) => (
  <form class="card" method="post" action="/account/check-mail">
    <EmailField value={email} fault={fault} />
    <button class="plain" type="submit">
      Send the mail again
    </button>
  </form>
);

const showCheckMail = (deps: PageDeps, { email, done }: Form, fault: FormFault = null) =>
  renderEntry(deps, {
    title: 'Check your mail',
    status: fault?.status ?? 200,
    children: (
      <>
        <h1>Check your mail</h1>
        <Done
          word={done}
          texts={{ sent: 'Sent, if this address has an account. It may take a minute to arrive.' }}
        />
        <p>
          A mail is on its way to {email ? <strong class="any">{email}</strong> : 'your address'}.
          Open the link in it within two days: it verifies your address.
        </p>
        <OutboxHint deps={deps} />
        <p>
          Then <a href="/account/login">log in</a> and link an agent.
        </p>
        <h2>No mail?</h2>
        <p>
          Look among the spam first. A wrong address gets nothing: sign up again with the right one.
        </p>
        {fault?.fields === undefined && <FormProblem fault={fault} />}
        <ResendForm email={email} fault={fault} />
      </>
    ),
  });

const checkMailPage = route({
  ...entry_page,
  id: 'checkMailPage',
  path: '/account/check-mail',
  query: Type.Object({
    email: Type.Optional(Type.String({ maxLength: 254 })),
    done: Type.Optional(Type.String({ maxLength: 20 })),
  }),
  handle: ({ query }, deps) => showCheckMail(deps, query),
});

const checkMailForm = route({
  ...public_form,
  id: 'checkMailForm',
  path: '/account/check-mail',
  body: formOf('email'),
  async handle(ctx, deps) {
    const { email = '' } = ctx.body;
    const outcome = await apiOf(ctx, deps)('resendVerification', { body: { email } });
    if (outcome.ok) return goTo(linkTo('/account/check-mail', { email, done: 'sent' }));
    return showCheckMail(deps, ctx.body, outcome.fault);
  },
});

const token_query = Type.Object({ token: Type.Optional(Type.String({ maxLength: 500 })) });
const link_ended =
  'This link is not complete, was used up, or has run out. Open it from the newest mail, or ask for another.';

const showVerify = (deps: PageDeps, token: string | undefined, fault: FormFault = null) =>
  renderEntry(deps, {
    title: 'Verify your address',
    status: fault?.status ?? 200,
    children: (
      <>
        <h1>Verify your address</h1>
        {token && fault === null ? (
          <>
            <p>Press the button if you signed up. If you did not, close this page.</p>
            <form class="card" method="post" action="/auth/verify">
              <input type="hidden" name="token" value={token} />
              <button type="submit">Yes, this is my address</button>
            </form>
          </>
        ) : (
          <>
            <p class="problem" role="alert">
              {fault?.code === 'RATE_LIMITED' ? 'Too many tries; wait a minute.' : link_ended}
            </p>
            <ResendForm email={undefined} fault={null} />
          </>
        )}
      </>
    ),
  });

const verifyPage = route({
  ...entry_page,
  id: 'verifyPage',
  path: '/auth/verify',
  query: token_query,
  handle: ({ query: { token } }, deps) => showVerify(deps, token),
});

const verified_path = '/account/agents?done=verified';

const verifyForm = route({
  ...public_form,
  id: 'verifyForm',
  path: '/auth/verify',
  body: formOf('token'),
  async handle(ctx, deps) {
    const { token = '' } = ctx.body;
    const outcome = await apiOf(ctx, deps)('verifyAddress', { body: { token } });
    // Who is not logged in is asked to first, and comes there then.
    return outcome.ok ? goTo(verified_path) : showVerify(deps, token, outcome.fault);
  },
});

const login_done = {
  out: 'You are logged out.',
  reset: 'The new password is set. Log in with it.',
  deleted: 'Your account is deleted. Your agents keep their public record.',
  verified: 'Your address is verified. Log in to link an agent.',
};

const showLogIn = (deps: PageDeps, { email, next, done }: Form, fault: FormFault = null) => {
  const path = shownNext(next);
  const is_linking = path?.startsWith('/account/agents') === true;
  return renderEntry(deps, {
    title: 'Log in',
    status: fault?.status ?? 200,
    children: (
      <>
        <h1>Log in</h1>
        <Done word={path === verified_path ? 'verified' : done} texts={login_done} />
        {is_linking && path !== verified_path && (
          <p>
            An agent forecasts once a person with a verified address answers for it. Log in to link
            yours, or sign up first.
          </p>
        )}
        {fault?.fields === undefined && <FormProblem fault={fault} />}
        <form class="card" method="post" action="/account/login">
          <Next next={next} />
          <EmailField value={email} fault={fault} />
          <Field
            name="password"
            label="Password"
            type="password"
            autoComplete="current-password"
            maxLength={1000}
            required
            fault={fault}
          />
          <button type="submit">Log in</button>
        </form>
        <p>
          No account yet? <a href={linkTo('/account/signup', { next: path })}>Sign up</a> ·{' '}
          <a href="/account/forgot">Forgot the password?</a>
        </p>
      </>
    ),
  });
};

const logInPage = route({
  ...entry_page,
  id: 'logInPage',
  path: '/account/login',
  query: Type.Object({
    ...next_query.properties,
    done: Type.Optional(Type.String({ maxLength: 20 })),
  }),
  handle: ({ query }, deps) => showLogIn(deps, query),
});

const login_words = {
  'body.password': 'Enter your password.',
  INVALID_CREDENTIALS: 'The address or the password is not right.',
};

const logInForm = route({
  ...public_form,
  id: 'logInForm',
  path: '/account/login',
  body: formOf('email', 'password', 'next'),
  async handle(ctx, deps) {
    const { email = '', password = '', next } = ctx.body;
    const outcome = await apiOf(ctx, deps)('logIn', { body: { email, password } });
    if (outcome.ok) return goTo(pathAfter(next), sessionCookie(deps, outcome.body.token));
    const { fault } = outcome;
    // The API says how long to wait, which is an hour and not a minute after many wrong passwords.
    const texts = fault.code === 'RATE_LIMITED' ? { RATE_LIMITED: fault.error } : login_words;
    const wrong = inWords(fault, texts, { INVALID_CREDENTIALS: 'password' });
    return showLogIn(deps, ctx.body, wrong);
  },
});

const logOutForm = route({
  ...own_form,
  id: 'logOutForm',
  path: '/account/logout',
  async handle(ctx, deps) {
    await apiOf(ctx, deps).get('logOut');
    return goTo('/account/login?done=out', sessionCookie(deps));
  },
});

const showForgot = (deps: PageDeps, { email, done }: Form, fault: FormFault = null) =>
  renderEntry(deps, {
    title: 'Forgot the password',
    status: fault?.status ?? 200,
    children: (
      <>
        <h1>Forgot the password?</h1>
        <Done
          word={done}
          texts={{ sent: 'If this address has an account, a mail with a link is on its way.' }}
        />
        {done === 'sent' && <OutboxHint deps={deps} />}
        <p>A mail brings you a link, which works for an hour, to choose a new one.</p>
        {fault?.fields === undefined && <FormProblem fault={fault} />}
        <form class="card" method="post" action="/account/forgot">
          <EmailField value={email} fault={fault} />
          <button type="submit">Send me a link</button>
        </form>
        <p>
          <a href="/account/login">Log in</a>
        </p>
      </>
    ),
  });

const forgotPage = route({
  ...entry_page,
  id: 'forgotPage',
  path: '/account/forgot',
  query: Type.Object({ done: Type.Optional(Type.String({ maxLength: 20 })) }),
  handle: ({ query }, deps) => showForgot(deps, query),
});

const forgotForm = route({
  ...public_form,
  id: 'forgotForm',
  path: '/account/forgot',
  body: formOf('email'),
  async handle(ctx, deps) {
    const { email = '' } = ctx.body;
    const outcome = await apiOf(ctx, deps)('forgotPassword', { body: { email } });
    if (outcome.ok) return goTo('/account/forgot?done=sent');
    return showForgot(deps, ctx.body, outcome.fault);
  },
});

const showReset = (deps: PageDeps, token: string | undefined, fault: FormFault = null) => {
  const is_ended = !token || fault?.code === 'INVALID_LINK';
  return renderEntry(deps, {
    title: 'Choose a new password',
    status: fault?.status ?? 200,
    children: (
      <>
        <h1>Choose a new password</h1>
        {is_ended ? (
          <>
            <p class="problem" role="alert">
              {link_ended}
            </p>
            <a class="button" href="/account/forgot">
              Ask for another link
            </a>
          </>
        ) : (
          <>
            <p>You are logged out everywhere; your agents stay linked.</p>
            {fault?.fields === undefined && <FormProblem fault={fault} />}
            <form class="card" method="post" action="/auth/reset">
              <input type="hidden" name="token" value={token} />
              <NewPasswordField fault={fault} />
              <button type="submit">Set the password</button>
            </form>
          </>
        )}
      </>
    ),
  });
};

const resetPage = route({
  ...entry_page,
  id: 'resetPage',
  path: '/auth/reset',
  query: token_query,
  handle: ({ query: { token } }, deps) => showReset(deps, token),
});

const resetForm = route({
  ...public_form,
  id: 'resetForm',
  path: '/auth/reset',
  body: formOf('token', 'password'),
  async handle(ctx, deps) {
    const { token = '', password = '' } = ctx.body;
    const outcome = await apiOf(ctx, deps)('resetPassword', { body: { token, password } });
    if (outcome.ok) return goTo('/account/login?done=reset', sessionCookie(deps));
    return showReset(deps, token, outcome.fault);
  },
});

export const sign_in_routes = [
  ...[signUpPage, signUpForm, checkMailPage, checkMailForm, verifyPage, verifyForm],
  ...[logInPage, logInForm, logOutForm, forgotPage, forgotForm, resetPage, resetForm],
];
