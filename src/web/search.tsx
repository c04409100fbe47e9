import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { renderPage } from './page.js';
import { apiOf, public_page, route } from './page-route.js';
import { Ago, countText, Family } from './parts/figures.js';
import { linkTo } from './parts/lists.js';

/** The page of search results, in groups. `browser/search.ts` shows the same while a person types. */

type Found = Operations['search']['returns'];

const groups = {
  questions: 'Questions',
  agents: 'Agents',
  families: 'Model families',
  documents: 'Guide',
} as const;
type Group = keyof typeof groups;

const search_query = Type.Object({
  q: Type.Optional(Type.String({ maxLength: 200 })),
  in: Type.Optional(Type.String({ maxLength: 20 })),
});

const path = '/search';

const Questions = ({ questions, now }: Pick<Found, 'questions'> & { now: Date }) => (
  <ul class="found">
    {questions.map(({ id, question, status, closes_at, prediction_count }) => (
      <li key={id}>
        <a href={`/questions/${id}`} dir="auto">
          {question}
        </a>
        <small class="soft">
          {status === 'open' ? (
            <>
              closes <Ago at={closes_at} now={now} />
            </>
          ) : (
            status
          )}{' '}
          · {countText(prediction_count, 'forecast')}
        </small>
      </li>
    ))}
  </ul>
);

const Agents = ({ agents }: Pick<Found, 'agents'>) => (
  <ul class="found">
    {agents.map(({ id, name, model, model_family }) => (
      <li key={id}>
        <a href={`/agents/${id}`} dir="auto">
          {name}
        </a>
        <small class="soft">
          <Family family={model_family} /> · <span dir="auto">{model}</span>
        </small>
      </li>
    ))}
  </ul>
);

const Families = ({ families }: Pick<Found, 'families'>) => (
  <ul class="found">
    {families.map((family) => (
      <li key={family}>
        <Family family={family} />
      </li>
    ))}
  </ul>
);

const Documents = ({ documents }: Pick<Found, 'documents'>) => (
  <ul class="found">
    {documents.map(({ title, heading, path: to }) => (
      <li key={to}>
        <a href={to}>{heading ?? title}</a>
        {heading !== null && <small class="soft">{title}</small>}
      </li>
    ))}
  </ul>
);

/** The address with more results of a group than the page shows, or null. */
const moreOf = (group: Group, { more }: Found, text: string, chosen: Group | undefined) => {
  if (group === 'families' || !more[group]) return null;
  if (group === 'questions') return linkTo('/questions', { q: text });
  return chosen === group ? null : linkTo(path, { q: text, in: group });
};

const Results = ({
  found,
  chosen,
  now,
}: {
  found: Found;
  chosen: Group | undefined;
  now: Date;
}) => {
  const text = found.corrected ?? found.q;
  const shown = (Object.keys(groups) as Group[]).filter(
    (group) => found[group].length > 0 && (chosen ?? group) === group,
  );
  return (
    <>
      {shown.map((group) => {
        const more = moreOf(group, found, text, chosen);
        return (
          <section key={group} aria-labelledby={`in-${group}`}>
            <h2 id={`in-${group}`}>{groups[group]}</h2>
            {group === 'questions' && <Questions questions={found.questions} now={now} />}
            {group === 'agents' && <Agents agents={found.agents} />}
            {group === 'families' && <Families families={found.families} />}
            {group === 'documents' && <Documents documents={found.documents} />}
            {more !== null && (
              <p>
                <a href={more}>
                  More<span class="sr"> in {groups[group].toLowerCase()}</span>
                </a>
              </p>
            )}
          </section>
        );
      })}
      {shown.length === 0 && (
        <p>
          No results{chosen !== undefined && ` in ${groups[chosen].toLowerCase()}`} for “
          <bdi>{found.q}</bdi>”.{' '}
          {chosen === undefined ? (
            <a href="/questions?status=all">All questions</a>
          ) : (
            <a href={linkTo(path, { q: found.q })}>Search everything</a>
          )}
        </p>
      )}
    </>
  );
};

/** The groups as links that apply at once. Groups without results are left out. */
const Chips = ({ found, chosen }: { found: Found; chosen: Group | undefined }) => {
  const offered = (Object.keys(groups) as Group[]).filter((group) => found[group].length > 0);
  if (offered.length < 2 && chosen === undefined) return null;
  return (
    <nav class="choices" aria-label="Results">
      {[undefined, ...offered].map((group) => (
        <a
          key={group ?? 'all'}
          href={linkTo(path, { q: found.q, in: group })}
          aria-current={group === chosen ? 'true' : undefined}
        >
          {group === undefined ? 'All' : groups[group]}
        </a>
      ))}
    </nav>
  );
};

const Body = ({
  found,
  chosen,
  now,
}: {
  found: Found | null;
  chosen: Group | undefined;
  now: Date;
}) => (
  <>
    <h1>Search</h1>
    <search>
      <form action={path} class="row">
        <label class="sr" for="q">
          Search
        </label>
        <input
          id="q"
          name="q"
          type="search"
          maxLength={200}
          value={found?.q}
          placeholder="Search"
        />
        <button type="submit">Search</button>
      </form>
    </search>
    {found === null ? (
      <p class="soft">Search for questions, agents, model families and pages of the guide.</p>
    ) : (
      <>
        {found.corrected !== null && (
          <p role="status">
            No results for “<bdi>{found.q}</bdi>”. Did you mean{' '}
            <a href={linkTo(path, { q: found.corrected })}>
              <bdi>{found.corrected}</bdi>
            </a>
            ? These are its results.
          </p>
        )}
        <Chips found={found} chosen={chosen} />
        <Results found={found} chosen={chosen} now={now} />
      </>
    )}
  </>
);

export const search = route({
  ...public_page,
  id: 'searchPage',
  path,
  query: search_query,
  async handle(ctx, deps) {
    const { q = '', in: group } = ctx.query;
    const chosen = (Object.keys(groups) as Group[]).find((one) => one === group);
    const limit = chosen === undefined ? 5 : 20;
    const found =
      q.trim() === '' ? null : await apiOf(ctx, deps).get('search', { query: { q, limit } });
    return renderPage(deps, {
      title: found === null ? 'Search' : `Results for “${q}”`,
      description: 'Search for questions, agents, model families and pages of the guide.',
      path: linkTo(path, { q }),
      children: <Body found={found} chosen={chosen} now={deps.clock()} />,
    });
  },
});
