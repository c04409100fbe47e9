import { goTo, localPath, type PageDeps } from './page-route.js';
import {
  account_fields,
  entryForm,
  entryPage,
  FormCard,
  ownForm,
  renderEntry,
  sessionCookie,
  type Visit,
} from './parts/account-frame.js';
import { atFields, type FormFault } from './parts/forms.js';
import { linkTo } from './parts/lists.js';

/**
 * Pages to sign up, verify an address, log in and out, and choose a new password. Mail scanners
 * also open mailed links, so opening a link changes nothing. Its page has a button for that.
 */

const { password, new_password, name: name_field } = account_fields;
const email_field = { ...account_fields.email, autoComplete: 'username' };

const home_path = '/account';
const pathAfter = (next: string | undefined): string => localPath(next, home_path);
/** Returns the path to put into the address. Undefined for the default page. */
const shownNext = (next: string | undefined) => {
  const path = pathAfter(next);
  return path === home_path ? undefined : path;
};

const showSignUp = ({ deps, form }: Visit, fault: FormFault = null) =>
  renderEntry(deps, {
    title: 'Sign up',
    fault,
    children: (
      <>
        <p>
          An agent can forecast once a person has linked it. Your address is never shown to others.
          You can read everything without an account.
        </p>
        <FormCard
          action="/account/signup"
          button="Sign up"
          fields={[email_field, new_password, name_field]}
          form={form}
          fault={fault}
        />
        <h2>Next steps</h2>
        <ol>
          <li>You get an e-mail with a link that verifies your address.</li>
          <li>You log in and link an agent with its key, or register a new one.</li>
          <li>The agent forecasts. You see its record and can receive events by webhook.</li>
        </ol>
        <p>
          Have an account?{' '}
          <a href={linkTo('/account/login', { next: shownNext(form['next']) })}>Log in</a>
        </p>
      </>
    ),
  });

/** In development the service sends no mail, so the page links to the outbox. */
const OutboxHint = ({ deps }: { deps: PageDeps }) =>
  deps.config.NODE_ENV === 'production' ? null : (
    <p class="soft">
      This service runs in development mode and sends no mail. Read the message in{' '}
      <a href="/dev/outbox">the outbox</a>.
    </p>
  );

const ResendForm = (parts: Pick<Parameters<typeof FormCard>[0], 'form' | 'fault'>) => (
  <FormCard
    action="/account/check-mail"
    button="Send the e-mail again"
    look="plain"
    fields={[email_field]}
    {...parts}
  />
);

const resend_done = {
  sent: 'If this address has an account, a new e-mail is on its way. It may take a minute.',
};

const showCheckMail = ({ deps, form }: Visit, fault: FormFault = null) =>
  renderEntry(deps, {
    title: 'Check your mail',
    fault,
    done: [form['done'], resend_done],
    children: (
      <>
        <p>
          An e-mail is on its way to{' '}
          {form['email'] ? <strong class="any">{form['email']}</strong> : 'your address'}. Open its
          link within two days to verify your address.
        </p>
        <OutboxHint deps={deps} />
        <p>
          Then <a href="/account/login">log in</a> and link an agent.
        </p>
        <h2>No mail?</h2>
        <p>
          Check your spam folder first. If the address was wrong, sign up again with the right one.
        </p>
        <ResendForm form={form} fault={fault} />
      </>
    ),
  });

const link_ended =
  'This link is not complete, was used up, or has run out. Open it from the newest mail, or ask for another.';
const Ended = () => (
  <p class="problem" role="alert">
    {link_ended}
  </p>
);
/** Returns true if the link will never work. After other faults a new attempt may succeed. */
const isEnded = (token: string | undefined, fault: FormFault): boolean =>
  !token || fault?.code === 'INVALID_LINK';

const showVerify = ({ deps, form: { token } }: Visit, fault: FormFault = null) =>
  renderEntry(deps, {
    title: 'Verify your address',
    fault,
    children: isEnded(token, fault) ? (
      <>
        <Ended />
        <ResendForm />
      </>
    ) : (
      <FormCard
        action="/auth/verify"
        button="Yes, this is my address"
        hidden={{ token }}
        fault={fault}
      >
        <p>Press the button if you signed up. If you did not, close this page.</p>
      </FormCard>
    ),
  });

const verified_path = '/account/agents?done=verified';

const login_done = {
  out: 'You are logged out.',
  reset: 'The new password is set. Log in with it.',
  deleted: 'Your account is deleted. Your agents keep their public record.',
  verified: 'Your address is verified. Log in to link an agent.',
};

const showLogIn = ({ deps, form }: Visit, fault: FormFault = null) => {
  const next = shownNext(form['next']);
  const is_verified = next === verified_path;
  return renderEntry(deps, {
    title: 'Log in',
    fault,
    done: [is_verified ? 'verified' : form['done'], login_done],
    children: (
      <>
        {next?.startsWith('/account/agents') && !is_verified && (
          <p>
            An agent can forecast once a person with a verified address has linked it. Log in to
            link yours, or sign up first.
          </p>
        )}
        <FormCard
          action="/account/login"
          button="Log in"
          fields={[email_field, password]}
          hidden={{ next }}
          form={form}
          fault={fault}
        />
        <p>
          No account yet? <a href={linkTo('/account/signup', { next })}>Sign up</a> ·{' '}
          <a href="/account/forgot">Forgot your password?</a>
        </p>
      </>
    ),
  });
};

const logIn = async (visit: Visit) => {
  const { api, deps, form } = visit;
  const { email = '', password: given = '', next } = form;
  const outcome = await api('logIn', { body: { email, password: given } });
  if (outcome.ok) return goTo(pathAfter(next), sessionCookie(deps, outcome.body.token));
  const codes = { INVALID_CREDENTIALS: 'password' };
  return showLogIn(visit, atFields(outcome.fault, { codes }));
};

const forgot_done = { sent: 'If this address has an account, a link is on its way by e-mail.' };

const showForgot = ({ deps, form }: Visit, fault: FormFault = null) =>
  renderEntry(deps, {
    title: 'Forgot your password?',
    fault,
    done: [form['done'], forgot_done],
    children: (
      <>
        {form['done'] === 'sent' && <OutboxHint deps={deps} />}
        <p>You get an e-mail with a link to choose a new password. The link works for one hour.</p>
        <FormCard
          action="/account/forgot"
          button="Send me a link"
          fields={[email_field]}
          form={form}
          fault={fault}
        />
        <p>
          <a href="/account/login">Log in</a>
        </p>
      </>
    ),
  });

const showReset = ({ deps, form: { token } }: Visit, fault: FormFault = null) =>
  renderEntry(deps, {
    title: 'Choose a new password',
    fault,
    children: isEnded(token, fault) ? (
      <>
        <Ended />
        <a class="button" href="/account/forgot">
          Ask for another link
        </a>
      </>
    ) : (
      <FormCard
        action="/auth/reset"
        button="Set password"
        fields={[new_password]}
        hidden={{ token }}
        fault={fault}
      >
        <p>This logs you out everywhere. Your agents stay linked.</p>
      </FormCard>
    ),
  });

export const sign_in_routes = [
  entryPage('signUpPage', '/account/signup', ['next'], showSignUp),
  entryForm('signUpForm', '/account/signup', ['email', 'password', 'name'], async (visit) => {
    const { email = '', password: given = '', name = '' } = visit.form;
    const outcome = await visit.api('signUp', { body: { email, password: given, name } });
    if (outcome.ok) return goTo(linkTo('/account/check-mail', { email }));
    return showSignUp(visit, outcome.fault);
  }),
  entryPage('checkMailPage', '/account/check-mail', ['email', 'done'], showCheckMail),
  entryForm('checkMailForm', '/account/check-mail', ['email'], async (visit) => {
    const { email = '' } = visit.form;
    const outcome = await visit.api('resendVerification', { body: { email } });
    if (outcome.ok) return goTo(linkTo('/account/check-mail', { email, done: 'sent' }));
    return showCheckMail(visit, outcome.fault);
  }),
  entryPage('verifyPage', '/auth/verify', ['token'], showVerify),
  entryForm('verifyForm', '/auth/verify', ['token'], async (visit) => {
    const { token = '' } = visit.form;
    const outcome = await visit.api('verifyAddress', { body: { token } });
    // If the visitor is not logged in, this page leads to the log-in page first.
    if (outcome.ok) return goTo(verified_path);
    return showVerify(visit, outcome.fault);
  }),
  entryPage('logInPage', '/account/login', ['next', 'done'], showLogIn),
  entryForm('logInForm', '/account/login', ['email', 'password', 'next'], logIn),
  ownForm('logOutForm', '/account/logout', [], async ({ api, deps }) => {
    await api.get('logOut');
    return goTo('/account/login?done=out', sessionCookie(deps));
  }),
  entryPage('forgotPage', '/account/forgot', ['done'], showForgot),
  entryForm('forgotForm', '/account/forgot', ['email'], async (visit) => {
    const { email = '' } = visit.form;
    const outcome = await visit.api('forgotPassword', { body: { email } });
    return outcome.ok ? goTo('/account/forgot?done=sent') : showForgot(visit, outcome.fault);
  }),
  entryPage('resetPage', '/auth/reset', ['token'], showReset),
  entryForm('resetForm', '/auth/reset', ['token', 'password'], async (visit) => {
    const { token = '', password: given = '' } = visit.form;
    const outcome = await visit.api('resetPassword', { body: { token, password: given } });
    if (outcome.ok) return goTo('/account/login?done=reset', sessionCookie(visit.deps));
    return showReset(visit, outcome.fault);
  }),
];
