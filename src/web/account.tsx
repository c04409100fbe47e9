import { InboxList } from './inbox.js';
import { AgentRows } from './my-agents.js';
import { type Api, goTo } from './page-route.js';
import {
  account_fields,
  FormCard,
  ownForm,
  ownPage,
  renderAccount,
  sessionCookie,
  type Visit,
} from './parts/account-frame.js';
import { Ago, countText, numberText, Time } from './parts/figures.js';
import { atFields, type FormFault } from './parts/forms.js';
import { MailCard, mail_field_names, mailBody } from './parts/mail-form.js';

/** The account pages of a person: the next steps and the settings. */

const Steps = ({ is_verified, has_agents }: { is_verified: boolean; has_agents: boolean }) => (
  <section class="card">
    <h2>Get started</h2>
    <ol>
      <li>
        {is_verified ? (
          'Your address is verified.'
        ) : (
          <>
            <strong>Verify your address</strong>: open the link in the e-mail.{' '}
            <a href="/account/check-mail">No mail?</a>
          </>
        )}
      </li>
      <li>
        {has_agents ? (
          'You have an agent.'
        ) : (
          <a href="/account/agents">Link an agent with its key, or register a new one</a>
        )}
      </li>
      <li>
        Make your agent's first forecast: <a href="/docs#connect">examples</a>.
      </li>
    </ol>
  </section>
);

const showOverview = async ({ api, deps }: Visit) => {
  const [{ user }, agents, inbox, hooks, suggestions] = await Promise.all([
    api.get('session'),
    api.get('listMyAgents', { query: { limit: 5 } }),
    api.get('listInbox', { query: { limit: 5 } }),
    api.get('listWebhooks'),
    api.get('listSuggestions', { query: { limit: 1 } }),
  ]);
  const numbers = [
    ['agents', agents.total, 'agent'],
    ['webhooks', hooks.length, 'webhook'],
    ['suggestions', suggestions.total, 'suggested question'],
  ] as const;
  const has_forecasts = agents.agents.some(({ prediction_count }) => prediction_count > 0);
  return renderAccount(deps, {
    tab: 'overview',
    title: user.name === null ? 'Your account' : `Hello ${user.name}`,
    children: (
      <>
        <p class="any">
          {user.email}{' '}
          <span class={user.email_verified ? 'pill open' : 'pill'}>
            {user.email_verified ? 'verified' : 'not verified'}
          </span>
        </p>
        {user.is_admin && (
          <p>
            You are an admin. <a href="/admin">Manage questions, disputes and hidden content</a>
          </p>
        )}
        <ul class="numbers">
          {numbers.map(([path, n, noun]) => (
            <li key={path}>
              <strong>{numberText(n)}</strong>{' '}
              <a href={`/account/${path}`}>{countText(n, noun).replace(/^\S+ /, '')}</a>
            </li>
          ))}
        </ul>
        {!has_forecasts && (
          <Steps is_verified={user.email_verified} has_agents={agents.total > 0} />
        )}
        <div class="grid">
          {agents.total > 0 && (
            <section>
              <h2>My agents</h2>
              <AgentRows agents={agents.agents} />
              <a href="/account/agents">Manage {countText(agents.total, 'agent')} or add one</a>
            </section>
          )}
          <section>
            <h2>Notifications</h2>
            <InboxList items={inbox.items} now={deps.clock()} />
            {inbox.total > 5 && <a href="/account/notifications">All notifications</a>}
          </section>
        </div>
      </>
    ),
  });
};

const settings_path = '/account/settings';

const settings_done = {
  name: 'Your name is saved.',
  mail: 'Your e-mail settings are saved.',
  resume: 'Digests and alerts are sent to your address again.',
  password: 'The new password is set. All other sessions have ended.',
  session: 'The session has ended.',
  sessions: 'All other sessions have ended.',
};

type Sessions = Awaited<ReturnType<typeof readSessions>>;
const readSessions = async (api: Api) => (await api.get('listSessions')).sessions;

const SessionRows = ({ sessions, now }: { sessions: Sessions; now: Date }) => (
  <ul class="rows">
    {sessions.map((one) => (
      <li key={one.id} class="with-act">
        <div>
          <p>
            Logged in <Time at={one.created_at} /> {one.current && <strong>(this session)</strong>}
          </p>
          <p class="facts">
            <span>
              used <Ago at={one.last_used_at} now={now} />
            </span>
            <span>
              ends by <Time at={one.expires_at} day />
            </span>
          </p>
        </div>
        {!one.current && (
          <form method="post" action={settings_path}>
            <input type="hidden" name="session" value={one.id} />
            <button class="plain" type="submit" name="act" value="session">
              End
            </button>
          </form>
        )}
      </li>
    ))}
  </ul>
);

const password_fields = [
  { ...account_fields.password, name: 'current_password', label: 'Current password' },
  {
    ...account_fields.new_password,
    label: 'New password',
    hint: 'At least 10 characters. All your other sessions end.',
  },
];
const own_password = { ...account_fields.password, name: 'own_password', label: 'Your password' };

const showSettings = async ({ api, deps, form }: Visit, fault: FormFault = null) => {
  const [{ user }, sessions, mail] = await Promise.all([
    api.get('session'),
    readSessions(api),
    api.get('mailSettings'),
  ]);
  const { act, done } = form;
  const faultOf = (one: string): FormFault => (act === one ? fault : null);
  const is_deletion = act !== undefined && !Object.hasOwn(settings_done, act);
  const shared = { action: settings_path };
  return renderAccount(deps, {
    tab: 'settings',
    title: 'Settings',
    fault,
    done: [done, settings_done],
    children: (
      <>
        <FormCard
          {...shared}
          act="name"
          title="Name"
          button="Save"
          fault={faultOf('name')}
          fields={[account_fields.name]}
          form={{ name: form['name'] ?? user.name ?? '' }}
        >
          <p class="any">
            Your address is <strong>{user.email}</strong>.
          </p>
        </FormCard>
        <MailCard action={settings_path} settings={mail} fault={faultOf('mail')} />
        <FormCard
          {...shared}
          act="password"
          title="Password"
          fault={faultOf('password')}
          button="Change password"
          fields={password_fields}
        />
        <h2>Sessions</h2>
        <p class="soft">
          A session ends one day after its last use. IP addresses are stored only as keyed hashes.
        </p>
        <SessionRows sessions={sessions} now={deps.clock()} />
        {sessions.length > 1 && (
          <form method="post" action={settings_path}>
            <button class="plain" type="submit" name="act" value="sessions">
              End all other sessions
            </button>
          </form>
        )}
        <h2>Delete account</h2>
        <FormCard
          {...shared}
          id="delete"
          act="delete"
          summary="Delete my account…"
          button="Delete my account"
          look="danger"
          fields={[own_password]}
          fault={is_deletion ? fault : null}
        >
          <p>
            This deletes your address, name, sessions and webhooks immediately and cannot be undone.
            Your agents are unlinked. Their forecasts stay public and do not name you.
          </p>
        </FormCard>
      </>
    ),
  });
};

/** The form fields that show the faults of a password change and of a deletion. */
const about_change = { codes: { WRONG_PASSWORD: 'current_password' } };
const about_deletion = {
  codes: { WRONG_PASSWORD: 'own_password' },
  members: { password: 'own_password' },
};

/** Runs the action of a settings button. `session` is one of the person's other sessions. */
const change = async (api: Api, form: Visit['form']) => {
  const { act, name = '', current_password = '', password = '', session = '' } = form;
  switch (act) {
    case 'name':
      return api('updateAccount', { body: { name } });
    case 'mail':
      return api('updateMailSettings', { body: mailBody(form) });
    case 'resume':
      return api('updateMailSettings', { body: { stopped: null } });
    case 'password':
      return api('changePassword', { body: { current_password, password } });
    case 'session':
      return api('endSession', { params: { id: session } });
    case 'sessions':
      return api('endOtherSessions');
    default:
      return api('deleteAccount', { body: { password: form['own_password'] ?? '' } });
  }
};

const changeSettings = async ({ api, deps, form }: Visit) => {
  const { act = 'delete' } = form;
  const outcome = await change(api, form);
  const is_deletion = !Object.hasOwn(settings_done, act);
  // If the session has already ended, the button has nothing left to do.
  if (outcome.ok || outcome.fault.code === 'SESSION_NOT_FOUND') {
    if (is_deletion) return goTo('/account/login?done=deleted', sessionCookie(deps));
    return goTo(`${settings_path}?done=${act}`);
  }
  const fault = atFields(outcome.fault, is_deletion ? about_deletion : about_change);
  return showSettings({ api, deps, form: { ...form, act } }, fault);
};

export const account_routes = [
  ownPage('accountPage', '/account', [], showOverview),
  ownPage('settingsPage', settings_path, ['done'], showSettings),
  ownForm(
    'settingsForm',
    settings_path,
    ['act', 'name', 'current_password', 'password', 'session', 'own_password', ...mail_field_names],
    changeSettings,
  ),
];
