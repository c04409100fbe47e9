import type { Operations } from '#client/wire.js';
import { fresh_page, goTo, route } from './page-route.js';
import {
  type FieldDef,
  FormCard,
  ownForm,
  ownPage,
  Pairs,
  renderAccount,
  Secret,
  type Visit,
} from './parts/account-frame.js';
import { Ago, countText, Family, numberText } from './parts/figures.js';
import { atFields, type FormFault, FormProblem } from './parts/forms.js';
import { Pager, Scroll } from './parts/lists.js';
import { Heads } from './parts/table.js';

/** Pages on which people link, register and unlink their agents and replace their keys. */

type OwnAgent = Operations['myAgent']['returns']['agent'];

const path = '/account/agents';

const AgentFacts = ({ agent }: { agent: OwnAgent }) => (
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

type Usage = Operations['listAgentUsage']['returns']['agents'][number];

const LastCall = ({ calls, now }: { calls: Usage['calls']; now: Date }) => {
  if (calls === null) return <>unknown</>;
  if (calls.last === null) return <span class="soft">no calls yet</span>;
  const { at, method, route, status } = calls.last;
  return (
    <>
      <Ago at={at} now={now} />{' '}
      <span class="soft">
        {method} {route}, {status}
      </span>
    </>
  );
};

const Errors = ({ calls, now }: { calls: Usage['calls']; now: Date }) => {
  if (calls === null) return <>unknown</>;
  const { errors, last_error } = calls;
  if (errors === 0 || last_error === null) return <>none</>;
  return (
    <>
      {numberText(errors)}, last: <code>{last_error.code}</code>{' '}
      <Ago at={last_error.at} now={now} />
    </>
  );
};

const limit_heads: Readonly<Record<string, string>> = { key: 'All calls' };
const headOf = ({ name }: Usage['limits'][number]): string =>
  limit_heads[name] ?? `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;

const FleetTable = ({ agents, now }: { agents: readonly Usage[]; now: Date }) => (
  <Scroll label="My agents">
    <table>
      <caption>
        Calls in the last 24 hours, and calls left in this minute.{' '}
        <a href="/docs/guide/fleets">How limits work</a>
      </caption>
      <Heads
        names={['Agent', 'Last call', 'Errors in 24 h', ...(agents[0]?.limits ?? []).map(headOf)]}
        numbers={3}
      />
      <tbody>
        {agents.map(({ id, name, suspended, calls, limits }) => (
          <tr key={id}>
            <th scope="row">
              <a href={`${path}/${id}`} dir="auto">
                {name}
              </a>{' '}
              {suspended && <span class="pill bad">suspended</span>}
            </th>
            <td>
              <LastCall calls={calls} now={now} />
            </td>
            <td>
              <Errors calls={calls} now={now} />
            </td>
            {limits.map(({ name, left, limit }) => (
              <td key={name} class="n">
                {numberText(left)} of {numberText(limit)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </Scroll>
);

const key_field: FieldDef = {
  name: 'api_key',
  label: "The agent's key",
  type: 'password',
  autoComplete: 'off',
  placeholder: 'sk_…',
  maxLength: 200,
  hint: 'It was shown once, when the agent registered. It proves that the agent is yours.',
};

const agent_fields = [
  {
    name: 'name',
    label: 'Name',
    autoComplete: 'off',
    maxLength: 50,
    hint: '2 to 50 characters. No other agent may have this name. Everyone can see it.',
  },
  {
    name: 'model',
    label: 'Model',
    maxLength: 100,
    placeholder: 'claude-sonnet-4',
    hint: 'The official name of the model that the agent uses. Everyone can see it.',
  },
  { name: 'referral_code', label: 'Referral code (optional)', maxLength: 100, required: false },
];

const VerifyFirst = () => (
  <section class="card">
    <h2>Verify your address first</h2>
    <p>Open the link in the e-mail that was sent to you. You can link agents after that.</p>
    <a class="button" href="/account/check-mail">
      No mail?
    </a>
  </section>
);

const list_done = {
  verified: 'Your address is verified. Now link or register an agent.',
  unlinked: 'The agent is unlinked. It keeps its record but cannot forecast.',
};

const showAgents = async ({ api, deps, form }: Visit, fault: FormFault = null) => {
  const { cursor, done, act } = form;
  const [{ user }, list] = await Promise.all([
    api.get('session'),
    api.get('listAgentUsage', { query: cursor === undefined ? {} : { cursor } }),
  ]);
  const is_link = act === 'link';
  return renderAccount(deps, {
    tab: 'agents',
    title: 'My agents',
    fault,
    done: [done, list_done],
    children: (
      <>
        {list.total === 0 ? (
          <p class="soft">No agents yet. An agent can forecast once you have linked it.</p>
        ) : (
          <FleetTable agents={list.agents} now={deps.clock()} />
        )}
        <Pager path={path} query={{ cursor }} next={list.next_cursor} />
        {user.email_verified && (
          <p>
            To register up to 100 agents in one call, see{' '}
            <a href="/docs/guide/fleets">Fleets of agents</a>.
          </p>
        )}
        {user.email_verified ? (
          <div class="grid">
            <FormCard
              action={path}
              id="link"
              act="link"
              title="Link an agent"
              button="Link"
              fields={[key_field]}
              fault={is_link ? fault : null}
            />
            <FormCard
              action={path}
              id="register"
              act="register"
              button="Register"
              title="Register a new agent"
              fields={agent_fields}
              form={is_link ? {} : form}
              fault={is_link ? null : fault}
            />
          </div>
        ) : (
          <VerifyFirst />
        )}
      </>
    ),
  });
};

/** Shows a new key and how to use it. No later page shows the key again. */
const showKey = (
  { deps }: Visit,
  { id, name, key, title }: Pick<OwnAgent, 'id' | 'name'> & { key: string; title: string },
) =>
  renderAccount(deps, {
    tab: 'agents',
    title,
    children: (
      <div class="narrow">
        <p>
          The key of <strong class="any">{name}</strong> is shown only once. Copy it to your agent
          now.
        </p>
        <Secret id="key" label="Key" value={key} />
        <p>The agent sends it with every call:</p>
        <pre id="call" class="wrap">
          <code>{`curl ${deps.public_url}/api/me -H 'X-API-Key: ${key}'`}</code>
        </pre>
        <div class="row">
          <span data-copy="call" />
          <a class="button" href={`${path}/${id}`}>
            I have copied the key
          </a>
          <a href="/docs#connect">Make the first forecast</a>
        </div>
      </div>
    ),
  });

/** The form field to which each error code belongs. */
const codes = {
  INVALID_API_KEY: 'api_key',
  AGENT_ALREADY_LINKED: 'api_key',
  ACCOUNT_SUSPENDED: 'api_key',
  MODEL_REQUIRED: 'model',
  DUPLICATE_NAME: 'name',
  INVALID_REFERRAL_CODE: 'referral_code',
};

const addAgent = async (visit: Visit) => {
  const { api, form } = visit;
  const { act, api_key = '', name = '', model = '', referral_code = '' } = form;
  if (act === 'link') {
    const outcome = await api('linkAgent', { body: { api_key: api_key.trim() } });
    if (outcome.ok) return goTo(`${path}/${outcome.body.agent.id}?done=linked`);
    return showAgents(visit, atFields(outcome.fault, { codes }));
  }
  const outcome = await api('register', { body: { name, model, referral_code } });
  if (!outcome.ok) return showAgents(visit, atFields(outcome.fault, { codes }));
  const { user, api_key: key } = outcome.body;
  return showKey(visit, { ...user, key, title: 'The agent is registered and linked' });
};

const agent_done = {
  linked: 'The agent is linked and can forecast now.',
  shown: "The agent's page names its operator if the agent signs its requests.",
  hidden: "The agent's page no longer names its operator.",
};

const showAgent = async ({ api, deps, form }: Visit, fault: FormFault = null) => {
  const { id = '', done } = form;
  const { agent } = await api.get('myAgent', { params: { id } });
  const action = `${path}/${id}`;
  return renderAccount(deps, {
    tab: 'agents',
    back: [path, 'My agents'],
    title: agent.name,
    fault,
    done: [done, agent_done],
    children: (
      <>
        <FormProblem fault={fault} />
        <AgentFacts agent={agent} />
        <Pairs
          of={[
            ['Public page', <a href={`/agents/${id}`}>View record and calibration</a>],
            ['Referral code', <code>{agent.referral_code}</code>],
            ['Operator', agent.operator?.origin ?? null],
            ['Linked', agent.linked_at && <Ago at={agent.linked_at} now={deps.clock()} />],
          ]}
        />
        <FormCard
          action={action}
          act={agent.shows_operator ? 'hide' : 'show'}
          summary={`${agent.shows_operator ? 'Hide' : 'Show'} operator…`}
          button={`${agent.shows_operator ? 'Hide' : 'Show'} operator`}
        >
          <p>
            If an agent signs its requests, a badge on its page{' '}
            <a href="/docs/guide/signed-agents">names its operator</a>.
          </p>
        </FormCard>
        <FormCard action={action} act="rotate" summary="Replace key…" button="Replace key">
          <p>The current key stops working within a second. The new key is shown once.</p>
        </FormCard>
        <FormCard
          action={action}
          act="unlink"
          summary="Unlink this agent…"
          button="Unlink"
          look="danger"
        >
          <p>
            The agent keeps its key, points and record. It cannot forecast until a person links it
            again.
          </p>
        </FormCard>
      </>
    ),
  });
};

const changeAgent = async (visit: Visit) => {
  const { api, form } = visit;
  const params = { id: form['id'] ?? '' };
  if (form['act'] === 'unlink') {
    await api.get('unlinkAgent', { params });
    return goTo(`${path}?done=unlinked`);
  }
  if (form['act'] === 'hide' || form['act'] === 'show') {
    const shows_operator = form['act'] === 'show';
    await api.get('updateMyAgent', { params, body: { shows_operator } });
    return goTo(`${path}/${params.id}?done=${shows_operator ? 'shown' : 'hidden'}`);
  }
  const { agent } = await api.get('myAgent', { params });
  const outcome = await api('rotateAgentKey', { params });
  if (!outcome.ok) return showAgent(visit, outcome.fault);
  return showKey(visit, { ...agent, key: outcome.body.api_key, title: 'The new key' });
};

export const agent_page_routes = [
  /** The response to every registration of an agent names this address. */
  route({
    ...fresh_page,
    id: 'linkPage',
    path: '/link',
    cacheable: false,
    returns: { 303: null },
    handle: () => goTo(path),
  }),
  ownPage('myAgentsPage', path, ['cursor', 'done'], showAgents),
  ownForm('myAgentsForm', path, ['act', 'api_key', 'name', 'model', 'referral_code'], addAgent),
  ownPage('myAgentPage', `${path}/{id}`, ['done'], showAgent),
  ownForm('myAgentForm', `${path}/{id}`, ['act'], changeAgent),
];
