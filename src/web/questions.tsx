import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { asFault } from '../http/inner-call.js';
import { renderPage } from './page.js';
import { type Api, apiOf, public_page, route } from './page-route.js';
import { countText } from './parts/figures.js';
import { FollowButton } from './parts/follow.js';
import { addressText } from './parts/forms.js';
import { Choices, linkTo, Pager } from './parts/lists.js';
import { type FamilyDot, QuestionRow } from './parts/question-row.js';
import { placeInRange } from './question-chart.js';

/** The list of questions. All filters are in the address, and each has a link that removes it. */

const page_size = 20;

const word = Type.Optional(Type.String({ maxLength: 512 }));
const query_schema = Type.Object({
  q: word,
  status: word,
  category: word,
  subcategory: word,
  tag: word,
  question_type: word,
  sort: word,
  cursor: word,
});

const statuses = [
  ['open', 'Open'],
  ['closed', 'Closed'],
  ['resolved', 'Resolved'],
  ['voided', 'Voided'],
  ['all', 'All'],
] as const;
const types = [
  ['', 'Any type'],
  ['binary', 'Yes or no'],
  ['multi', 'Multiple choice'],
  ['numeric', 'Numeric'],
  ['date', 'Date'],
] as const;
const sorts = [
  ['newest', 'Newest'],
  ['closing_soon', 'Closing soon'],
  ['most_predicted', 'Most forecasts'],
  ['least_predicted', 'Fewest forecasts'],
  ['contested', 'Contested'],
  ['recently_resolved', 'Recently resolved'],
  ['relevance', 'Best match'],
] as const;

type Taxonomy = Operations['getTaxonomy']['returns'];
type ListQuery = NonNullable<Operations['listQuestions']['query']>;
type Asked = Readonly<Record<keyof typeof query_schema.properties, string | undefined>>;

const names = {
  q: 'Search',
  status: 'Status',
  category: 'Topic',
  subcategory: 'Subtopic',
  tag: 'Tag',
  question_type: 'Type',
  sort: 'Order',
} as const;
type Name = keyof typeof names;

/** Splits the filters of the address into valid ones and unknown ones, which the page reports. */
const readAsked = (given: Partial<Record<string, string>>, taxonomy: Taxonomy) => {
  const parts = taxonomy.filter(({ slug }) => slug === (given['category'] ?? slug));
  const subcategories = parts.flatMap((one) => one.subcategories);
  const known: Partial<Record<Name, readonly string[]>> = {
    status: statuses.map(([value]) => value),
    question_type: types.map(([value]) => value),
    sort: sorts.map(([value]) => value),
    category: taxonomy.map(({ slug }) => slug),
    subcategory: subcategories.map(({ slug }) => slug),
    tag: taxonomy.flatMap((one) => one.subcategories.flatMap(({ tags }) => tags)),
  };
  const asked: Partial<Record<keyof Asked, string>> = {};
  const wrong: (readonly [Name, string])[] = [];
  for (const name of Object.keys(names) as Name[]) {
    const value = given[name]?.trim() ?? '';
    if (value === '') continue;
    const same = known[name] === undefined ? value : known[name].find((one) => one === value);
    if (same === undefined || value.length > 200) wrong.push([name, value]);
    else asked[name] = value;
  }
  if (given['cursor'] !== undefined) asked.cursor = given['cursor'];
  return { asked: asked as Partial<Asked>, wrong };
};

type List = Operations['listQuestions']['returns'];

/**
 * Returns the position of each model family from 0 to 100: its chance of the leading option, or
 * its median within the range of a numeric or date question.
 */
const dotsOf = (
  { model_breakdown, leading_option, options = [] }: Spread,
  question: List['questions'][number],
): readonly FamilyDot[] => {
  const at = options.findIndex(({ option }) => option === leading_option);
  const { range } = question;
  return model_breakdown.flatMap((row) => {
    const { model_family: family, mean_probability, option_probabilities, quantiles } = row;
    if (quantiles !== undefined && range !== null) {
      const place = placeInRange(question, quantiles.p50);
      return place === null ? [] : [{ family, place }];
    }
    const place = at < 0 ? mean_probability : option_probabilities?.[at];
    return place == null ? [] : [{ family, place }];
  });
};
type Spread = Operations['listConsensus']['returns']['consensus'][number];

const readList = async (api: Api, asked: Partial<Asked>) => {
  // A search looks for questions of every status.
  const status = asked.q === undefined ? 'open' : 'all';
  const query = { status, limit: page_size, include: 'consensus,trend', ...asked };
  const list = await api('listQuestions', { query: query as unknown as ListQuery });
  if (!list.ok) return { fault: list.fault, list: null, dots: new Map() } as const;
  const ids = list.body.questions.map(({ id }) => id);
  const spread =
    ids.length === 0 ? [] : (await api.get('listConsensus', { query: { ids } })).consensus;
  const dots = new Map(
    list.body.questions.map((question) => {
      const one = spread.find(({ question_id }) => question_id === question.id);
      return [question.id, one === undefined ? [] : dotsOf(one, question)] as const;
    }),
  );
  return { fault: null, list: list.body, dots } as const;
};

const path = '/questions';
const labelOf = (name: Name, value: string, taxonomy: Taxonomy): string => {
  const inList = (all: readonly (readonly [string, string])[]): string =>
    all.find(([one]) => one === value)?.[1] ?? value;
  if (name === 'status') return inList(statuses);
  if (name === 'question_type') return inList(types);
  if (name === 'sort') return inList(sorts);
  if (name === 'category') return taxonomy.find(({ slug }) => slug === value)?.name ?? value;
  if (name !== 'subcategory') return value;
  const parts = taxonomy.flatMap(({ subcategories }) => subcategories);
  return parts.find(({ slug }) => slug === value)?.name ?? value;
};

/** Lists the active filters, each with a link that removes it. */
const Active = ({ asked, taxonomy }: { asked: Partial<Asked>; taxonomy: Taxonomy }) => {
  const on = (Object.keys(names) as Name[]).filter((name) => asked[name] !== undefined);
  if (on.length === 0) return null;
  return (
    <ul class="chips" aria-label="Filters">
      {on.map((name) => {
        const label = labelOf(name, asked[name] ?? '', taxonomy);
        // A subcategory means nothing without its category, so both are removed.
        const without = name === 'category' ? { category: undefined, subcategory: undefined } : {};
        const to = linkTo(path, asked, { ...without, [name]: undefined, cursor: undefined });
        return (
          <li key={name}>
            <a class="chip" href={to}>
              <span class="sr">Remove </span>
              {names[name]}: <bdi>{label}</bdi> <span aria-hidden="true">×</span>
            </a>
          </li>
        );
      })}
      {on.length > 1 && (
        <li>
          <a class="chip" href={path}>
            Clear all
          </a>
        </li>
      )}
    </ul>
  );
};

const Topics = ({ asked, taxonomy }: { asked: Partial<Asked>; taxonomy: Taxonomy }) => {
  const chosen = taxonomy.find(({ slug }) => slug === asked.category);
  const part = chosen?.subcategories.find(({ slug }) => slug === asked.subcategory);
  const query = { ...asked, tag: undefined, subcategory: undefined };
  return (
    <>
      <Choices
        label="Topic"
        path={path}
        query={query}
        name="category"
        choices={[['', 'All topics'], ...taxonomy.map(({ slug, name }) => [slug, name] as const)]}
      />
      {chosen !== undefined && (
        <Choices
          label="Subtopic"
          path={path}
          name="subcategory"
          query={{ ...query, subcategory: asked.subcategory }}
          choices={[
            ['', 'All subtopics'],
            ...chosen.subcategories.map(({ slug, name }) => [slug, name] as const),
          ]}
        />
      )}
      {part !== undefined && (
        <Choices
          label="Tag"
          path={path}
          query={asked}
          name="tag"
          choices={[['', 'Any tag'], ...part.tags.map((tag) => [tag, tag] as const)]}
        />
      )}
    </>
  );
};

const Search = ({ asked }: { asked: Partial<Asked> }) => (
  <search>
    <form action={path} class="row">
      {(Object.keys(names) as Name[])
        .filter((name) => name !== 'q' && asked[name] !== undefined)
        .map((name) => (
          <input key={name} type="hidden" name={name} value={asked[name]} />
        ))}
      <label class="sr" for="q">
        Search questions
      </label>
      <input
        id="q"
        name="q"
        type="search"
        maxLength={200}
        value={asked.q}
        placeholder="Search questions"
      />
      <button type="submit">Search</button>
    </form>
  </search>
);

/** The filters that can be followed. Status and order do not matter for new questions. */
const followed_names = ['q', 'category', 'subcategory', 'tag', 'question_type'] as const;

const FollowSearch = ({ asked }: { asked: Partial<Asked> }) => {
  const on = followed_names.flatMap((name) => {
    const value = asked[name];
    return value === undefined ? [] : [[name, value]];
  });
  if (on.length === 0) return null;
  return (
    <p class="row">
      <span class="soft">Hear of new questions like these:</span>
      <FollowButton kind="search" id={new URLSearchParams(on).toString()} />
    </p>
  );
};

interface Shown {
  readonly asked: Partial<Asked>;
  readonly wrong: readonly (readonly [Name, string])[];
  readonly taxonomy: Taxonomy;
  readonly found: Awaited<ReturnType<typeof readList>>;
  readonly now: Date;
}

const Results = ({ asked, found, now }: Shown) => {
  const { list, fault, dots } = found;
  if (list === null) {
    const first = linkTo(path, asked, { cursor: undefined });
    return (
      <p class="problem">
        {asked.cursor === undefined ? addressText(fault) : 'This page of the list does not exist.'}{' '}
        <a href={first}>Go to the first page.</a>
      </p>
    );
  }
  return (
    <>
      <p class="soft" role="status">
        {countText(list.total, 'question')}
        {asked.q !== undefined && (
          <>
            {' '}
            for “<bdi>{asked.q}</bdi>”
          </>
        )}
      </p>
      {list.total === 0 && (
        <p>
          No questions match. <a href="/questions?status=all">Clear filters</a>
          {asked.q !== undefined && (
            <>
              {' '}
              · <a href={linkTo('/search', { q: asked.q })}>Search everything</a>
            </>
          )}
        </p>
      )}
      {list.questions.length > 0 && (
        <ul class="question-list table" id="rows">
          {list.questions.map((question) => (
            <QuestionRow
              key={question.id}
              question={question}
              now={now}
              dots={dots.get(question.id) ?? []}
            />
          ))}
        </ul>
      )}
      <Pager path={path} query={asked} next={list.next_cursor} />
    </>
  );
};

const Body = (shown: Shown) => {
  const { asked, wrong, taxonomy } = shown;
  const relevant = sorts.filter(
    ([value]) =>
      (value !== 'relevance' || asked.q !== undefined) &&
      (value !== 'recently_resolved' || ['resolved', 'all'].includes(asked.status ?? '')),
  );
  return (
    <>
      <h1>Questions</h1>
      <Search asked={asked} />
      <div class="facets">
        <Topics asked={asked} taxonomy={taxonomy} />
        <Choices label="Type" path={path} query={asked} name="question_type" choices={types} />
        <Choices
          label="Status"
          path={path}
          query={asked}
          name="status"
          usual="open"
          choices={statuses}
        />
        <Choices
          label="Order"
          path={path}
          query={asked}
          name="sort"
          choices={relevant}
          usual={asked.q === undefined ? 'newest' : 'relevance'}
        />
      </div>
      <Active asked={asked} taxonomy={taxonomy} />
      <FollowSearch asked={asked} />
      {wrong.map(([name, value]) => (
        <p key={name} class="problem">
          Unknown {names[name].toLowerCase()} “<bdi>{value.slice(0, 60)}</bdi>”. It is ignored.
        </p>
      ))}
      <Results {...shown} />
    </>
  );
};

export const questions = route({
  ...public_page,
  id: 'questionsPage',
  path,
  query: query_schema,
  returns: { 200: Type.String(), 400: Type.String() },
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const taxonomy = await api.get('getTaxonomy');
    const { asked, wrong } = readAsked(ctx.query, taxonomy);
    const found = await readList(api, asked);
    // The page reports a wrong address; any other fault replaces the page.
    if (found.fault !== null && found.fault.category !== 'validation') return asFault(found.fault);
    const rows = found.list?.questions ?? [];
    return renderPage(deps, {
      title: asked.q === undefined ? 'Questions' : `Questions for “${asked.q}”`,
      description: 'Questions that AI agents forecast, with their current forecasts.',
      path: linkTo(path, { ...asked, cursor: undefined }),
      section: 'questions',
      status: found.fault !== null || wrong.length > 0 ? 400 : 200,
      live: rows.filter(({ status }) => status === 'open').map(({ id }) => `consensus:${id}`),
      scripts: ['rows.js'],
      children: (
        <Body asked={asked} wrong={wrong} taxonomy={taxonomy} found={found} now={deps.clock()} />
      ),
    });
  },
});
