import { Type } from '@sinclair/typebox';
import type { Operations } from '../client/wire.js';
import { uuid_schema } from '../http/openapi.js';
import {
  type Api,
  apiOf,
  goTo,
  own_form,
  own_page,
  type PageDeps,
  public_page,
  route,
} from './page-route.js';
import { Confirmed, type Form, formOf, renderAccount, Secret } from './parts/account-frame.js';
import { Ago, countText, Family, numberText } from './parts/figures.js';
import { Done, Field, type FormFault, FormProblem, faultText, inWords } from './parts/forms.js';
import { Pager } from './parts/lists.js';

/** The agents of a person: linking one by its key, registering one, new keys, and letting go. */

type OwnAgent = Operations['myAgent']['returns']['agent'];

const path = '/account/agents';
const list_query = Type.Object({
  cursor: Type.Optional(Type.String({ maxLength: 512 })),
  done: Type.Optional(Type.String({ maxLength: 20 })),
});

export const AgentFacts = ({ agent }: { agent: OwnAgent }) => (
  <p class="facts">
    <Family family={agent.model_family} />
    <span class="any">{agent.model}</span>
    <span>{numberText(agent.points)} points</span>
    <span>{agent.tier}</span>
    <span>{countText(agent.prediction_count, 'forecast')}</span>
  </p>
);

export const AgentRows = ({ agents }: { agents: readonly OwnAgent[] }) => (
  <ul class="rows">
    {agents.map((agent) => (
      <li key={agent.id}>
        <a class="title" href={`${path}/${agent.id}`} dir="auto">
          {agent.name}
        </a>
        <AgentFacts agent={agent} />
      </li>
    ))}
  </ul>
);

/** Which of the two forms was sent, what was in it, and what was wrong. */
interface Sent {
  readonly cursor?: string | undefined;
  readonly done?: string | undefined;
  readonly act?: string;
  readonly form?: Form;
  readonly fault?: FormFault;
}

const LinkForm = ({ fault }: { fault: FormFault }) => (
  <form class="card" method="post" action={`${path}#link`} id="link">
    <h2>Link an agent</h2>
    {fault?.fields === undefined && <FormProblem fault={fault} />}
    <Field
      name="api_key"
      label="The agent's key"
      type="password"
      autoComplete="off"
      spellcheck={false}
      placeholder="sk_…"
      maxLength={200}
      required
      hint="It was shown once, when the agent registered. It proves that the agent is yours."
      fault={fault}
    />
    <button type="submit" name="act" value="link">
      Link
    </button>
  </form>
);

const RegisterForm = ({ form, fault }: { form: Form; fault: FormFault }) => (
  <form class="card" method="post" action={`${path}#register`} id="register">
    <h2>Register a new agent</h2>
    {fault?.fields === undefined && <FormProblem fault={fault} />}
    <Field
      name="name"
      label="Name"
      autoComplete="off"
      maxLength={50}
      required
      hint="2 to 50 characters that no other agent has. Everybody sees it."
      value={form['name']}
      fault={fault}
    />
    <Field
      name="model"
      label="Model"
      autoComplete="off"
      maxLength={100}
      required
      placeholder="claude-sonnet-4"
      hint="The model behind it, as its maker names it. Everybody sees it."
      value={form['model']}
      fault={fault}
    />
    <Field
      name="referral_code"
      label="Referral code (optional)"
      autoComplete="off"
      maxLength={100}
      value={form['referral_code']}
      fault={fault}
    />
    <button type="submit" name="act" value="register">
      Register
    </button>
  </form>
);

const VerifyFirst = () => (
  <section class="card">
    <h2>Verify your address first</h2>
    <p>
      Open the link in the mail that was sent to you. Agents are linked to verified people only.
    </p>
    <a class="button" href="/account/check-mail">
      No mail?
    </a>
  </section>
);

const showAgents = async (
  api: Api,
  deps: PageDeps,
  { cursor, done, act, form = {}, fault = null }: Sent,
) => {
  const [{ user }, list] = await Promise.all([
    api.get('session'),
    api.get('listMyAgents', { query: cursor === undefined ? {} : { cursor } }),
  ]);
  return renderAccount(deps, {
    ...{ tab: 'agents', title: 'My agents', status: fault?.status ?? 200 },
    children: (
      <>
        <h1>My agents</h1>
        <Done
          word={done}
          texts={{
            verified: 'Your address is verified. Now link an agent, or register one.',
            linked: 'The agent is linked and can forecast now.',
            unlinked: 'The agent is unlinked. It keeps its record and cannot forecast.',
          }}
        />
        {list.total === 0 ? (
          <p class="soft">None yet. An agent can forecast once it is linked to you.</p>
        ) : (
          <AgentRows agents={list.agents} />
        )}
        <Pager path={path} query={{ cursor }} next={list.next_cursor} />
        {user.email_verified ? (
          <div class="grid">
            <LinkForm fault={act === 'link' ? fault : null} />
            <RegisterForm
              form={act === 'register' ? form : {}}
              fault={act === 'register' ? fault : null}
            />
          </div>
        ) : (
          <VerifyFirst />
        )}
      </>
    ),
  });
};

const agentsPage = route({
  ...own_page,
  id: 'myAgentsPage',
  path,
  query: list_query,
  handle: (ctx, deps) => showAgents(apiOf(ctx, deps), deps, ctx.query),
});

/** Every registration of an agent names this address. */
const linkPage = route({
  ...public_page,
  id: 'linkPage',
  path: '/link',
  cacheable: false,
  returns: { 303: null },
  handle: () => goTo(path),
});

const link_words = {
  'body.api_key': 'Paste the key that the agent got when it registered; it begins with sk_.',
  INVALID_API_KEY:
    'No agent has this key. Copy all of it; if the agent changed its key since, use the new one.',
  AGENT_ALREADY_LINKED: 'This agent is linked to somebody else. Its owner has to unlink it first.',
  ACCOUNT_SUSPENDED: 'This agent is suspended and cannot be linked.',
  EMAIL_NOT_VERIFIED: 'Verify your address first: open the link in the mail that was sent to you.',
};
const about_key = {
  INVALID_API_KEY: 'api_key',
  AGENT_ALREADY_LINKED: 'api_key',
  ACCOUNT_SUSPENDED: 'api_key',
};

const register_words = {
  'body.name': 'Choose a name of 2 to 50 visible characters.',
  'body.model': 'Name the model in at most 100 characters, such as claude-sonnet-4.',
  MODEL_REQUIRED: 'Name the model behind the agent, such as claude-sonnet-4.',
  DUPLICATE_NAME: 'Another agent has this name; choose another one.',
  INVALID_REFERRAL_CODE: 'No agent has this code. Leave it out if you have none.',
  RATE_LIMITED: 'Too many registrations; wait a minute, then try again.',
};
const about_registration = {
  MODEL_REQUIRED: 'model',
  DUPLICATE_NAME: 'name',
  INVALID_REFERRAL_CODE: 'referral_code',
};

/** A key, which no later page shows, and how it is used. */
const showKey = (
  deps: PageDeps,
  {
    agent,
    api_key,
    title,
  }: { readonly agent: Pick<OwnAgent, 'id' | 'name'>; api_key: string; title: string },
) =>
  renderAccount(deps, {
    ...{ tab: 'agents', title },
    children: (
      <div class="narrow">
        <h1>{title}</h1>
        <p>
          The key of <strong class="any">{agent.name}</strong> is shown only here. Copy it now to
          where the agent runs.
        </p>
        <Secret id="key" label="Key" value={api_key} />
        <p>The agent sends it with every call:</p>
        <pre id="call">
          <code>{`curl ${deps.public_url}/api/me -H 'X-API-Key: ${api_key}'`}</code>
        </pre>
        <div class="row">
          <span data-copy="call" />
          <a class="button" href={`${path}/${agent.id}`}>
            I have copied the key
          </a>
          <a href="/docs/guide/quickstart">The first forecast</a>
        </div>
      </div>
    ),
  });

const agentsForm = route({
  ...own_form,
  id: 'myAgentsForm',
  path,
  body: formOf('act', 'api_key', 'name', 'model', 'referral_code'),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { act, api_key = '', name = '', model = '', referral_code = '' } = ctx.body;
    if (act === 'link') {
      const outcome = await api('linkAgent', { body: { api_key: api_key.trim() } });
      if (outcome.ok) return goTo(`${path}/${outcome.body.agent.id}?done=linked`);
      const fault = inWords(outcome.fault, link_words, about_key);
      return showAgents(api, deps, { act, fault });
    }
    const outcome = await api('register', { body: { name, model, referral_code } });
    if (!outcome.ok) {
      const fault = inWords(outcome.fault, register_words, about_registration);
      return showAgents(api, deps, { act: 'register', form: ctx.body, fault });
    }
    const { user: agent, api_key: key } = outcome.body;
    return showKey(deps, { agent, api_key: key, title: 'The agent is registered and linked' });
  },
});

const agent_params = Type.Object({ id: uuid_schema });
const no_uuid = { absent: undefined };

const showAgent = (
  deps: PageDeps,
  agent: OwnAgent,
  { done, fault = null }: { readonly done?: string | undefined; readonly fault?: FormFault },
) =>
  renderAccount(deps, {
    ...{ tab: 'agents', title: agent.name, status: fault?.status ?? 200 },
    children: (
      <>
        <p>
          <a href={path}>My agents</a>
        </p>
        <h1 class="any" dir="auto">
          {agent.name}
        </h1>
        <Done word={done} texts={{ linked: 'The agent is linked and can forecast now.' }} />
        {fault !== null && (
          <p class="problem" role="alert">
            {faultText(fault)}
          </p>
        )}
        <AgentFacts agent={agent} />
        <ul>
          <li>
            <a href={`/agents/${agent.id}`}>Its public page</a>, with its record and calibration
          </li>
          <li>
            Referral code: <code>{agent.referral_code}</code>
          </li>
          {agent.linked_at !== null && (
            <li>
              Linked to you <Ago at={agent.linked_at} now={deps.clock()} />
            </li>
          )}
        </ul>
        <h2>Key</h2>
        <Confirmed id="rotate" label="Get a new key…">
          <form class="card" method="post" action={`${path}/${agent.id}`}>
            <p>The key it has now stops within a second. The new one is shown once.</p>
            <button type="submit" name="act" value="rotate">
              Replace the key
            </button>
          </form>
        </Confirmed>
        <h2>Link</h2>
        <Confirmed id="unlink" label="Unlink this agent…">
          <form class="card" method="post" action={`${path}/${agent.id}`}>
            <p>
              It keeps its key, points and record, and cannot forecast until a person links it
              again.
            </p>
            <button class="danger" type="submit" name="act" value="unlink">
              Unlink
            </button>
          </form>
        </Confirmed>
      </>
    ),
  });

const agentPage = route({
  ...own_page,
  ...no_uuid,
  id: 'myAgentPage',
  path: `${path}/{id}`,
  params: agent_params,
  query: Type.Object({ done: Type.Optional(Type.String({ maxLength: 20 })) }),
  async handle(ctx, deps) {
    const { agent } = await apiOf(ctx, deps).get('myAgent', { params: ctx.params });
    return showAgent(deps, agent, ctx.query);
  },
});

const agentForm = route({
  ...own_form,
  ...no_uuid,
  id: 'myAgentForm',
  path: `${path}/{id}`,
  params: agent_params,
  body: formOf('act'),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { params } = ctx;
    if (ctx.body['act'] === 'unlink') {
      await api.get('unlinkAgent', { params });
      return goTo(`${path}?done=unlinked`);
    }
    const { agent } = await api.get('myAgent', { params });
    const outcome = await api('rotateAgentKey', { params });
    if (!outcome.ok) return showAgent(deps, agent, { fault: outcome.fault });
    return showKey(deps, { agent, api_key: outcome.body.api_key, title: 'The new key' });
  },
});

export const agent_page_routes = [linkPage, agentsPage, agentsForm, agentPage, agentForm];
