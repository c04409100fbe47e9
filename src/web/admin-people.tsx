import { Type } from '@sinclair/typebox';
import { uuid_schema } from '../http/schemas.js';
import { common_faults } from '../kit/fault.js';
import { renderPage } from './page.js';
import {
  type Api,
  admin_form,
  admin_page,
  apiOf,
  goTo,
  type PageDeps,
  route,
} from './page-route.js';
import { Act, AdminNav, countReports, Reason } from './parts/admin.js';
import { countText, Family, Time } from './parts/figures.js';
import { Done, type FormFault } from './parts/forms.js';
import { Choices, Pager } from './parts/lists.js';

/** Pages on which admins find agents and people. Nobody else sees other people's addresses. */

const optional = Type.Optional(Type.String({ maxLength: 300 }));

const Find = ({ path, label, q }: { path: string; label: string; q: string | undefined }) => (
  <form class="row" action={path}>
    <label class="sr" for="find">
      {label}
    </label>
    <input id="find" class="short" type="search" name="q" value={q} placeholder={label} />
    <button type="submit">Find</button>
  </form>
);

interface AgentsQuery {
  readonly q?: string;
  readonly of?: string;
  readonly cursor?: string;
  readonly done?: string;
}

const showAgents = async (
  deps: PageDeps,
  api: Api,
  parts: { query: AgentsQuery; said?: { id: string; fault: FormFault } },
) => {
  const { said } = parts;
  const { done, ...query } = parts.query;
  const { q, of, cursor } = query;
  const { agents, next_cursor } = await api.get('listAdminAgents', {
    query: {
      limit: 50,
      ...(q && { q }),
      ...(cursor && { cursor }),
      ...(of === 'suspended' && { suspended: true }),
    },
  });
  return renderPage(deps, {
    title: 'Agents',
    is_private: true,
    section: 'account',
    fault: said?.fault,
    children: (
      <>
        <h1>Agents</h1>
        <AdminNav here="/admin/agents" reports={await countReports(api)} />
        <Done
          word={done}
          texts={{
            suspend: 'The agent is suspended. Its key stops working within a second.',
            restore: 'The agent is active again.',
          }}
        />
        <Find path="/admin/agents" label="Name begins with" q={q} />
        <Choices
          label="Status"
          path="/admin/agents"
          query={query}
          name="of"
          choices={[
            ['', 'all'],
            ['suspended', 'suspended'],
          ]}
        />
        {agents.length === 0 && <p class="soft">No agents match.</p>}
        <ul class="plain-list">
          {agents.map((one) => {
            const is_suspended = one.suspended_at !== null;
            return (
              <li key={one.id}>
                <a href={`/agents/${one.id}`} dir="auto">
                  {one.name}
                </a>{' '}
                <Family family={one.model_family} /> <span class="soft">{one.model}, owner: </span>
                {one.owner_email === null ? (
                  <span class="soft">none</span>
                ) : (
                  <a href={`/admin/people?q=${encodeURIComponent(one.owner_email)}`}>
                    {one.owner_email}
                  </a>
                )}
                {one.suspended_at !== null && (
                  <>
                    , <strong>suspended</strong> <Time at={one.suspended_at} />
                  </>
                )}
                <Act
                  action={`/admin/agents/${one.id}`}
                  act={is_suspended ? 'restore' : 'suspend'}
                  label={is_suspended ? 'Restore' : 'Suspend'}
                  danger={!is_suspended}
                  fault={said?.id === one.id ? said.fault : null}
                >
                  <Reason id={`reason-${one.id}`} is_public />
                </Act>
              </li>
            );
          })}
        </ul>
        <Pager path="/admin/agents" query={{ ...query }} next={next_cursor} />
      </>
    ),
  });
};

const agentsPage = route({
  ...admin_page,
  id: 'adminAgentsPage',
  path: '/admin/agents',
  query: Type.Object({ q: optional, of: optional, cursor: optional, done: optional }),
  handle: (ctx, deps) => showAgents(deps, apiOf(ctx, deps), { query: ctx.query }),
});

const agentForm = route({
  ...admin_form,
  id: 'adminAgent',
  path: '/admin/agents/{id}',
  returns: { ...admin_form.returns, 404: Type.String() },
  params: Type.Object({ id: uuid_schema }),
  absent: common_faults.NOT_FOUND,
  body: Type.Object({
    act: Type.Union([Type.Literal('suspend'), Type.Literal('restore')]),
    reason: Type.String({ maxLength: 8_000 }),
  }),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { act, reason } = ctx.body;
    const { id } = ctx.params;
    const name = act === 'suspend' ? 'suspendAgent' : 'restoreAgent';
    const answer = await api(name, { params: { id }, body: { reason } });
    if (answer.ok) return goTo(`/admin/agents?done=${act}`);
    const said = { id, fault: answer.fault };
    return showAgents(deps, api, { query: {}, said });
  },
});

const peoplePage = route({
  ...admin_page,
  id: 'adminPeoplePage',
  path: '/admin/people',
  query: Type.Object({ q: optional, cursor: optional }),
  async handle(ctx, deps) {
    const { q, cursor } = ctx.query;
    const api = apiOf(ctx, deps);
    const { people, next_cursor } = await api.get('listPeople', {
      query: { limit: 50, ...(q && { q }), ...(cursor && { cursor }) },
    });
    return renderPage(deps, {
      title: 'People',
      is_private: true,
      section: 'account',
      children: (
        <>
          <h1>People</h1>
          <AdminNav here="/admin/people" reports={await countReports(api)} />
          <Find path="/admin/people" label="Address begins with" q={q} />
          {people.length === 0 && <p class="soft">No people match.</p>}
          <ul class="plain-list">
            {people.map((one) => (
              <li key={one.id}>
                <strong>{one.email}</strong>{' '}
                {one.name !== null && <span dir="auto">{one.name}, </span>}
                <span class="soft">
                  {countText(one.agent_count, 'agent')}, joined <Time at={one.created_at} day />
                  {one.email_verified_at === null ? ', address not verified' : ''}
                </span>
              </li>
            ))}
          </ul>
          <Pager path="/admin/people" query={ctx.query} next={next_cursor} />
        </>
      ),
    });
  },
});

export const admin_people_routes = [agentsPage, agentForm, peoplePage];
