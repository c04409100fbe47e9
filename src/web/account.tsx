import { Type } from '@sinclair/typebox';
import { NoticeList } from './inbox.js';
import { AgentRows } from './my-agents.js';
import { type Api, apiOf, goTo, own_form, own_page, type PageDeps, route } from './page-route.js';
import {
  Confirmed,
  type Form,
  formOf,
  renderAccount,
  sessionCookie,
} from './parts/account-frame.js';
import { Ago, countText, numberText, Time } from './parts/figures.js';
import { Done, Field, type FormFault, FormProblem, inWords } from './parts/forms.js';

/** The account of a person: what there is to do, and its settings. */

const Steps = ({ is_verified, has_agents }: { is_verified: boolean; has_agents: boolean }) => (
  <section class="card">
    <h2>Begin here</h2>
    <ol>
      <li>
        {is_verified ? (
          'Your address is verified.'
        ) : (
          <>
            <strong>Verify your address</strong>: open the link in the mail.{' '}
            <a href="/account/check-mail">No mail?</a>
          </>
        )}
      </li>
      <li>
        {has_agents ? (
          'You have an agent.'
        ) : (
          <>
            <a href="/account/agents">Link an agent by its key, or register one</a>.
          </>
        )}
      </li>
      <li>
        Let it forecast: <a href="/docs/guide/quickstart">the quickstart</a> has the first calls.
      </li>
    </ol>
  </section>
);

const overview = route({
  ...own_page,
  id: 'accountPage',
  path: '/account',
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const [{ user }, agents, notices, hooks, suggestions] = await Promise.all([
      api.get('session'),
      api.get('listMyAgents', { query: { limit: 5 } }),
      api.get('listNotifications', { query: { limit: 5 } }),
      api.get('listWebhooks'),
      api.get('listSuggestions', { query: { limit: 1 } }),
    ]);
    const has_forecasts = agents.agents.some(({ prediction_count }) => prediction_count > 0);
    const now = deps.clock();
    return renderAccount(deps, {
      ...{ tab: 'overview', title: 'Account' },
      children: (
        <>
          <h1 class="any">{user.name === null ? 'Your account' : `Hello ${user.name}`}</h1>
          <p class="any">
            {user.email}{' '}
            <span class={user.email_verified ? 'pill open' : 'pill'}>
              {user.email_verified ? 'verified' : 'not verified'}
            </span>
          </p>
          {user.is_admin && (
            <p>
              You are an admin: <a href="/admin">questions, disputes and reports</a>.
            </p>
          )}
          <ul class="numbers">
            <li>
              <strong>{numberText(agents.total)}</strong>{' '}
              <a href="/account/agents">{agents.total === 1 ? 'agent' : 'agents'}</a>
            </li>
            <li>
              <strong>{numberText(hooks.length)}</strong>{' '}
              <a href="/account/webhooks">{hooks.length === 1 ? 'webhook' : 'webhooks'}</a>
            </li>
            <li>
              <strong>{numberText(suggestions.total)}</strong>{' '}
              <a href="/account/suggestions">
                {suggestions.total === 1 ? 'suggested question' : 'suggested questions'}
              </a>
            </li>
          </ul>
          {!has_forecasts && (
            <Steps is_verified={user.email_verified} has_agents={agents.total > 0} />
          )}
          <div class="grid">
            {agents.total > 0 && (
              <section>
                <h2>My agents</h2>
                <AgentRows agents={agents.agents} />
                <a href="/account/agents">All {countText(agents.total, 'agent')}, and new ones</a>
              </section>
            )}
            <section>
              <h2>Notifications</h2>
              <NoticeList notices={notices.notifications} now={now} />
              {notices.total > 5 && <a href="/account/notifications">All notifications</a>}
            </section>
          </div>
        </>
      ),
    });
  },
});

const settings_path = '/account/settings';

const settings_done = {
  name: 'Your name is changed.',
  password: 'The new password is set; every other session has ended.',
  session: 'The session has ended.',
  sessions: 'Every other session has ended.',
};

type Sessions = Awaited<ReturnType<typeof readSettings>>['sessions'];

const readSettings = async (api: Api) => {
  const [{ user }, { sessions }] = await Promise.all([api.get('session'), api.get('listSessions')]);
  return { user, sessions };
};

const SessionTable = ({ sessions, now }: { sessions: Sessions; now: Date }) => (
  <div class="scroll">
    <table>
      <thead>
        <tr>
          <th scope="col">Logged in</th>
          <th scope="col">Last used</th>
          <th scope="col">Ends at the latest</th>
          <th scope="col">
            <span class="sr">End it</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {sessions.map((one) => (
          <tr key={one.id}>
            <td>
              <Time at={one.created_at} />
            </td>
            <td>
              <Ago at={one.last_used_at} now={now} />
            </td>
            <td>
              <Time at={one.expires_at} day />
            </td>
            <td>
              {one.current ? (
                'This one'
              ) : (
                <form method="post" action={settings_path}>
                  <input type="hidden" name="session" value={one.id} />
                  <button class="plain" type="submit" name="act" value="session">
                    End
                  </button>
                </form>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const showSettings = async (
  api: Api,
  deps: PageDeps,
  {
    done,
    act,
    form = {},
    fault = null,
  }: { done?: string | undefined; act?: string | undefined; form?: Form; fault?: FormFault },
) => {
  const { user, sessions } = await readSettings(api);
  const faultOf = (one: string): FormFault => (act === one ? fault : null);
  const Problem = ({ of }: { of: string }) =>
    faultOf(of)?.fields === undefined ? <FormProblem fault={faultOf(of)} /> : null;
  return renderAccount(deps, {
    ...{ tab: 'settings', title: 'Settings', status: fault?.status ?? 200 },
    children: (
      <>
        <h1>Settings</h1>
        <Done word={done} texts={settings_done} />
        <form class="card" method="post" action={settings_path}>
          <h2>Name</h2>
          <Problem of="name" />
          <p class="any">
            Your address is <strong>{user.email}</strong>.
          </p>
          <Field
            name="name"
            label="Name"
            autoComplete="name"
            maxLength={80}
            hint="How mails to you begin; nobody else sees it. Empty: none."
            value={form['name'] ?? user.name ?? ''}
            fault={faultOf('name')}
          />
          <button type="submit" name="act" value="name">
            Save
          </button>
        </form>
        <form class="card" method="post" action={settings_path}>
          <h2>Password</h2>
          <Problem of="password" />
          {/* Tells programs that keep passwords whose they are. */}
          <input type="hidden" name="username" autoComplete="username" value={user.email} />
          <Field
            name="current_password"
            label="Current password"
            type="password"
            autoComplete="current-password"
            maxLength={1000}
            required
            fault={faultOf('password')}
          />
          <Field
            name="password"
            label="New password"
            type="password"
            autoComplete="new-password"
            minLength={10}
            maxLength={1000}
            required
            hint="At least 10 characters. You stay logged in here and nowhere else."
            fault={faultOf('password')}
          />
          <button type="submit" name="act" value="password">
            Change the password
          </button>
        </form>
        <section>
          <h2>Sessions</h2>
          <p class="soft">A session ends a day after its last use. Addresses are not kept.</p>
          <SessionTable sessions={sessions} now={deps.clock()} />
          {sessions.length > 1 && (
            <form method="post" action={settings_path}>
              <p>
                <button class="plain" type="submit" name="act" value="sessions">
                  End all others
                </button>
              </p>
            </form>
          )}
        </section>
        <section>
          <h2>Delete the account</h2>
          <Confirmed id="delete" label="Delete my account…" open={act === 'delete'}>
            <form class="card" method="post" action={`${settings_path}#delete`}>
              <p>
                Your address, name, sessions and webhooks are erased at once, and nothing brings
                them back. Your agents are unlinked: their forecasts stay, and say nothing of you.
              </p>
              <Problem of="delete" />
              <Field
                name="own_password"
                label="Your password"
                type="password"
                autoComplete="current-password"
                maxLength={1000}
                required
                fault={faultOf('delete')}
              />
              <button class="danger" type="submit" name="act" value="delete">
                Delete my account
              </button>
            </form>
          </Confirmed>
        </section>
      </>
    ),
  });
};

const settingsPage = route({
  ...own_page,
  id: 'settingsPage',
  path: settings_path,
  query: Type.Object({ done: Type.Optional(Type.String({ maxLength: 20 })) }),
  handle: (ctx, deps) => showSettings(apiOf(ctx, deps), deps, ctx.query),
});

const password_words = {
  'body.current_password': 'Enter the password that you have now.',
  WRONG_PASSWORD: 'This is not your password.',
};

/** What each button of the settings does; the session that it ends is not this one. */
const change = async (api: Api, form: Form) => {
  const { act, name = '', current_password = '', password = '', session = '' } = form;
  switch (act) {
    case 'name':
      return api('updateAccount', { body: { name } });
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

const settingsForm = route({
  ...own_form,
  id: 'settingsForm',
  path: settings_path,
  body: formOf(
    ...['act', 'name', 'current_password', 'password', 'session', 'own_password', 'username'],
  ),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { act = '' } = ctx.body;
    const outcome = await change(api, ctx.body);
    const is_deletion = !Object.hasOwn(settings_done, act);
    if (outcome.ok) {
      if (is_deletion) return goTo('/account/login?done=deleted', sessionCookie(deps));
      return goTo(`${settings_path}?done=${act}`);
    }
    const { fault } = outcome;
    // A session that has ended already is what the button was for.
    if (fault.code === 'SESSION_NOT_FOUND') return goTo(`${settings_path}?done=session`);
    const place = is_deletion ? 'own_password' : 'current_password';
    const about_own = is_deletion
      ? { WRONG_PASSWORD: place, INVALID_REQUEST: place }
      : { WRONG_PASSWORD: place };
    const texts = is_deletion
      ? { ...password_words, INVALID_REQUEST: 'Enter your password.' }
      : password_words;
    return showSettings(api, deps, {
      act: is_deletion ? 'delete' : act,
      ...{ form: ctx.body, fault: inWords(fault, texts, about_own) },
    });
  },
});

export const account_routes = [overview, settingsPage, settingsForm];
