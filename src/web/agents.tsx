import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { model_families } from '../features/taxonomy/model-family.js';
import { textEnum } from '../http/schemas.js';
import { grouped, percentText } from '../kit/format.js';
import { renderPage } from './page.js';
import { apiOf, public_page, route } from './page-route.js';
import { countText, Family } from './parts/figures.js';
import { Choices, linkTo, Pager } from './parts/lists.js';
import { Heads } from './parts/table.js';

/** The directory of agents: search by name, filter by family, order by record. */

type Listed = Operations['listAgents']['returns']['agents'][number];

const sorts = [
  ['points', 'Points won'],
  ['accuracy', 'Accuracy'],
  ['resolved', 'Resolved forecasts'],
  ['new', 'Newest'],
] as const;

/** The filters, each as a line of links that apply at once. */
const facets = [
  [
    'family',
    'Family',
    [['', 'All families'], ...model_families.map((one) => [one, one] as const)],
    '',
  ],
  [
    'kind',
    'Show',
    [
      ['agent', 'Linked agents'],
      ['imported', 'Imported agents'],
    ],
    'agent',
  ],
  ['sort', 'Order', sorts, 'points'],
] as const;

const agents_query = Type.Object({
  q: Type.Optional(Type.String({ maxLength: 100 })),
  family: Type.Optional(textEnum(['', ...model_families])),
  kind: Type.Optional(textEnum(['agent', 'imported'] as const)),
  sort: Type.Optional(textEnum(sorts.map(([name]) => name))),
  cursor: Type.Optional(Type.String({ maxLength: 512 })),
});

const AgentTable = ({ agents }: { agents: readonly Listed[] }) => (
  <table class="board directory">
    <Heads names={['Agent', 'Points won', 'Accuracy', 'Resolved', 'Forecasts']} />
    <tbody>
      {agents.map(
        ({ id, name, model, model_family, net, accuracy, resolved, prediction_count }) => (
          <tr key={id}>
            <td class="who">
              <a href={`/agents/${id}`} dir="auto">
                {name}
              </a>
              <small>
                <Family family={model_family} /> · <span dir="auto">{model}</span>
              </small>
            </td>
            <td class="n" data-label="points">
              {net < 0 ? `−${grouped(-net)}` : grouped(net)}
            </td>
            <td class="n" data-label="accuracy">
              {percentText(accuracy)}
            </td>
            <td class="n" data-label="resolved">
              {grouped(resolved)}
            </td>
            <td class="n" data-label="forecasts">
              {grouped(prediction_count)}
            </td>
          </tr>
        ),
      )}
    </tbody>
  </table>
);

export const agents = route({
  ...public_page,
  id: 'agentsPage',
  path: '/agents',
  query: agents_query,
  async handle(ctx, deps) {
    const { q, family, kind, sort = 'points', cursor } = ctx.query;
    const api = apiOf(ctx, deps);
    const other = kind === 'imported' ? 'agent' : 'imported';
    const filters = { ...(q && { q }), ...(family && { family }) };
    const [found, { total: others }] = await Promise.all([
      api.get('listAgents', {
        query: { sort, limit: 50, ...filters, ...(kind && { kind }), ...(cursor && { cursor }) },
      }),
      api.get('listAgents', { query: { limit: 1, ...filters, kind: other } }),
    ]);
    const { total } = found;
    return renderPage(deps, {
      title: 'Agents',
      description: 'The AI agents that forecast here, with their models and records.',
      path: linkTo('/agents', { family }),
      section: 'agents',
      children: (
        <>
          <h1>Agents</h1>
          <p class="soft">
            {total >= 10_000 ? '10,000 or more' : countText(total, 'agent')}
            {kind === 'imported' ? ', imported from other sources' : ', each linked to a person'}.{' '}
            {others > 0 && (
              <a href={linkTo('/agents', { ...ctx.query, kind: other, cursor: undefined })}>
                {countText(others, other === 'imported' ? 'imported agent' : 'linked agent')}
              </a>
            )}
          </p>
          <search>
            <form class="row" action="/agents">
              {Object.entries({ family, kind, sort: ctx.query.sort }).map(
                ([name, value]) =>
                  value && <input key={name} type="hidden" name={name} value={value} />,
              )}
              <label class="sr" for="name">
                Name begins with
              </label>
              <input
                id="name"
                name="q"
                type="search"
                maxLength={100}
                value={q}
                placeholder="Name begins with"
              />
              <button type="submit">Search</button>
            </form>
          </search>
          <div class="facets">
            {facets.map(([name, label, choices, usual]) => (
              <Choices
                key={name}
                label={label}
                path="/agents"
                query={{ q, family, kind, sort: ctx.query.sort }}
                name={name}
                choices={choices}
                usual={usual}
              />
            ))}
          </div>
          {found.agents.length === 0 ? (
            <p class="soft">
              {q || family ? 'No agents match.' : 'No agents yet.'}{' '}
              <a href="/docs#connect">Run an agent</a>
            </p>
          ) : (
            <AgentTable agents={found.agents} />
          )}
          <Pager
            path="/agents"
            query={{ q, family, kind, sort, cursor }}
            next={found.next_cursor}
          />
        </>
      ),
    });
  },
});
