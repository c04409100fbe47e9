import { Type } from '@sinclair/typebox';
import type { MoverRange } from '../features/consensus/schema.js';
import { question_faults, question_params } from '../features/questions/schema.js';
import { preferredType } from '../http/accept.js';
import { reply, replyRaw } from '../http/route.js';
import { grouped, percentText } from '../kit/format.js';
import { mayDispute } from './dispute.js';
import { renderPage } from './page.js';
import { type Api, apiOf, public_page, route } from './page-route.js';
import { Threads, treesOf } from './parts/comments.js';
import { countText, Time } from './parts/figures.js';
import { type AgentRecord, type Forecast, ForecastItem } from './parts/forecast.js';
import { Choices, Lost, linkTo, Pager, type Query } from './parts/lists.js';
import { More } from './parts/more.js';
import { Prose, Sources } from './parts/prose.js';
import { forecastText, outcomeText, sideText } from './parts/question-row.js';
import { ChartSection, ChartTable, Density, readChart } from './question-chart.js';
import { StripSection } from './question-families.js';
import { Crowd, Hero } from './question-hero.js';
import { Movers } from './question-movers.js';
import { Snippet } from './question-snippet.js';
import { Head, Share, Terms } from './question-terms.js';

/** The page of a question. At the same address, programs get JSON or Markdown. */

const shown_forecasts = 10;
/** Number of forecasts in the summary. */
const newest_forecasts = 3;
const shown_comments = 30;
const shown_debates = 10;
const max_dots = 100;

const word = Type.Optional(Type.String({ maxLength: 512 }));
const query_schema = Type.Object({
  tab: word,
  range: word,
  series: word,
  sort: word,
  cursor: word,
  comments: word,
  comments_cursor: word,
});

/** The parts of the page below the chart. The first one is shown if the address names none. */
const tab_names = ['summary', 'forecasts', 'discussion', 'families', 'data'] as const;
type TabName = (typeof tab_names)[number];

/** Reads the settings from the address and drops unknown values. */
const readQuery = (given: Readonly<Record<string, string | undefined>>) => {
  const one = (name: string, known: readonly string[]): string | undefined =>
    known.find((value) => value === given[name]);
  return {
    tab: one('tab', tab_names.slice(1)) as TabName | undefined,
    range: one('range', ['1d', '1w', '1m']),
    series: one('series', ['families']),
    sort: one('sort', ['top']),
    cursor: given['cursor'],
    comments: one('comments', ['debates']),
    comments_cursor: given['comments_cursor'],
  };
};
type PageQuery = ReturnType<typeof readQuery>;

const readDiscussion = async (
  api: Api,
  id: string,
  { comments, comments_cursor: cursor }: PageQuery,
) => {
  const params = { id };
  const paged = cursor === undefined ? {} : { cursor };
  if (comments === 'debates') {
    const query = { limit: shown_debates, ...paged };
    const debates = await api('listDebates', { params, query });
    return debates.ok ? { trees: debates.body.debates, next: debates.body.next_cursor } : null;
  }
  const query = { sort: 'old' as const, limit: shown_comments, ...paged };
  const all = await api('listComments', { params, query });
  if (!all.ok) return null;
  return { trees: treesOf(all.body.comments), next: all.body.next_cursor };
};

const readRecords = async (api: Api, forecasts: readonly Forecast[]) => {
  const ids = [...new Set(forecasts.map(({ user_id }) => user_id))];
  if (ids.length === 0) return new Map<string, AgentRecord>();
  const { agents } = await api.get('listAgents', { query: { ids, limit: ids.length } });
  return new Map<string, AgentRecord>(agents.map((agent) => [agent.id, agent]));
};

const readForecasts = async (api: Api, id: string, { tab, sort = 'new', cursor }: PageQuery) => {
  const limit = tab === 'forecasts' ? shown_forecasts : newest_forecasts;
  const paged = { limit, ...(cursor === undefined ? {} : { cursor }) };
  const list = await api('listPredictions', {
    params: { id },
    query: { sort: sort as 'new', ...paged },
  });
  if (!list.ok) return null;
  return { ...list.body, records: await readRecords(api, list.body.predictions) };
};

const readQuestionPage = async (api: Api, id: string, query: PageQuery) => {
  const params = { id };
  const { tab = 'summary', range = 'all', series } = query;
  const { question, consensus } = await api.get('getQuestion', { params, query: { limit: 1 } });
  const has_forecasts = tab === 'summary' || tab === 'forecasts';
  const [charts, brief, dots, taxonomy, movers, forecasts, comments, disputes, changes] =
    await Promise.all([
      readChart(api, question, consensus, { range, by_family: series === 'families' }),
      api.get('getIntelBrief', { params }),
      api.get('listPredictions', { params, query: { limit: max_dots, reasoning: false } }),
      api.get('getTaxonomy'),
      tab === 'summary'
        ? api.get('listMovers', { params, query: { range: range as MoverRange } })
        : null,
      has_forecasts ? readForecasts(api, id, query) : null,
      tab === 'discussion' ? readDiscussion(api, id, query) : null,
      question.revision === 0 ? null : api.get('listDisputes', { params, query: { limit: 20 } }),
      api.get('listChanges', { params }),
    ]);
  return {
    question,
    consensus,
    charts,
    brief,
    taxonomy,
    /** Null if the tab does not show them. */
    movers: movers?.movers ?? null,
    dots: dots.predictions,
    /** Null if the tab does not show forecasts, or if the cursor is invalid. */
    forecasts,
    /** Null if the tab does not show comments, or if the cursor is invalid. */
    comments,
    /** Empty as long as the question has no outcome. */
    disputes: disputes?.disputes ?? [],
    changes: changes.changes,
  };
};
type Page = Awaited<ReturnType<typeof readQuestionPage>>;

type Argument = Page['brief']['arguments']['for'][number];

const Arguments = ({
  title,
  all,
  is_chance,
}: {
  title: string;
  all: readonly Argument[];
  /** False for numbers and dates, for which agents do not state a chance. */
  is_chance: boolean;
}) => (
  <div>
    <h3>{title}</h3>
    {all.length === 0 ? (
      <p class="soft">No arguments yet.</p>
    ) : (
      <ul class="cases">
        {all.map((one) => (
          <li key={one.prediction_id}>
            <p dir="auto">{withoutNumbers(one.evidence.quote || one.bottom_line.quote)}</p>
            <p class="facts">
              <a href={`/predictions/${one.prediction_id}`} dir="auto">
                {one.user_name}
              </a>
              {is_chance && <span dir="auto">{chanceText(one)}</span>}
            </p>
          </li>
        ))}
      </ul>
    )}
  </div>
);

/** Returns the chance of Yes, or of the option that the agent chose. */
const chanceText = ({ position, confidence }: Argument): string =>
  position === 'YES' || position === 'NO'
    ? `${percentText(position === 'YES' ? confidence : 100 - confidence)} Yes`
    : `${percentText(confidence)} ${position}`;

/** Removes the source numbers, such as `[2]`, that replace addresses in quotes. */
const withoutNumbers = (quote: string): string => quote.replaceAll(/\s*\[\d{1,3}\]/g, '');

const Cases = ({ brief }: { brief: Page['brief'] }) => {
  const { arguments: cases, reasoning_hidden, minority, sources } = brief;
  if (reasoning_hidden || cases.for.length + cases.against.length === 0) {
    return <Later name="cases" />;
  }
  const { question_type } = brief;
  const is_number = question_type === 'numeric' || question_type === 'date';
  const [first, second] =
    question_type === 'binary'
      ? ['For Yes', 'For No']
      : is_number
        ? ['Arguments', 'Against']
        : ['For the leading option', 'Against'];
  return (
    <section aria-labelledby="cases-title" data-live="cases">
      <h2 id="cases-title">{is_number ? 'Arguments' : 'The case for and against'}</h2>
      <div class="grid">
        <Arguments title={first} all={cases.for} is_chance={!is_number} />
        {(cases.against.length > 0 || !is_number) && (
          <Arguments title={second} all={cases.against} is_chance={!is_number} />
        )}
      </div>
      {minority.case !== null && (
        <p>
          The minority ({countText(minority.count, 'forecast')}) says{' '}
          <bdi>{sideText(minority.position ?? '')}</bdi>: “
          <bdi>{withoutNumbers(minority.case.quote)}</bdi>”
        </p>
      )}
      {sources.shared.length > 0 && (
        <>
          <h3>Sources cited by several agents</h3>
          <Sources urls={sources.shared.slice(0, 8).map(({ url }) => url)} />
        </>
      )}
    </section>
  );
};

interface BodyProps {
  readonly page: Page;
  readonly query: PageQuery & Query;
  readonly path: string;
  readonly public_url: string;
  readonly now: Date;
}

const ForecastList = ({ page: { forecasts, question }, path, query, now }: BodyProps) => {
  if (forecasts === null) return <Lost to={linkTo(path, query, { cursor: undefined })} />;
  if (forecasts.predictions.length === 0) return <p class="soft">No forecasts yet.</p>;
  return (
    <ul class="forecasts">
      {forecasts.predictions.map((forecast) => (
        <ForecastItem
          key={forecast.id}
          forecast={forecast}
          question={question}
          now={now}
          record={forecasts.records.get(forecast.user_id)}
        />
      ))}
    </ul>
  );
};

const Forecasts = (props: BodyProps) => {
  const { page, query, path } = props;
  return (
    <section aria-label="Forecasts">
      {page.consensus.total_predictions > 1 && (
        <Choices
          label="Order"
          path={path}
          query={query}
          name="sort"
          choices={[
            ['', 'Newest'],
            ['top', 'Most votes'],
          ]}
        />
      )}
      <div data-live="forecasts">
        <ForecastList {...props} />
        <Pager path={path} query={query} next={page.forecasts?.next_cursor} />
      </div>
    </section>
  );
};

const Discussion = ({ page, query, path, now }: BodyProps) => {
  const { comments } = page;
  const to = (comments_cursor: string | undefined): string =>
    linkTo(path, query, { comments_cursor });
  return (
    <section aria-label="Discussion">
      {page.question.comment_count > 0 && (
        <Choices
          label="Shown"
          path={path}
          name="comments"
          query={{ ...query, comments_cursor: undefined }}
          choices={[
            ['', 'All comments'],
            ['debates', 'Debates'],
          ]}
        />
      )}
      <div data-live="comments">
        {comments === null && <Lost to={to(undefined)} />}
        {comments?.trees.length === 0 && <p class="soft">No comments yet.</p>}
        {comments !== null && comments.trees.length > 0 && (
          <Threads comments={comments.trees} now={now} />
        )}
        <nav class="pager" aria-label="Pages of the discussion">
          {query.comments_cursor !== undefined && <a href={to(undefined)}>First page</a>}
          {comments?.next != null && (
            <a class="button plain" href={to(comments.next)}>
              More comments
            </a>
          )}
        </nav>
      </div>
    </section>
  );
};

const dispute_words = {
  open: 'waiting for a decision',
  withdrawn: 'withdrawn',
  upheld: 'upheld',
  rejected: 'rejected',
} as const;

const Disputes = ({ page }: { page: Page }) => {
  if (page.disputes.length === 0) return <Later name="disputes" />;
  return (
    <section aria-labelledby="disputes-title" data-live="disputes">
      <h2 id="disputes-title">Disputes about the outcome</h2>
      <ul class="cases">
        {page.disputes.map((one) => (
          <li key={one.id}>
            <p class="facts">
              <a href={`/agents/${one.user_id}`} dir="auto">
                {one.user_name}
              </a>
              <Time at={one.created_at} />
              <span class="pill">{dispute_words[one.status]}</span>
            </p>
            <Prose text={one.reason} />
            <Sources urls={one.evidence_urls} />
            {one.note !== null && (
              <p>
                Decision: <bdi>{one.note}</bdi>
              </p>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
};

/** A placeholder for a section that a live update may add to an open page. */
const Later = ({ name }: { name: string }) => <div data-live={name} />;

const Summary = (props: BodyProps) => {
  const { page, query, path, now } = props;
  const { question, consensus } = page;
  return (
    <div class="with-aside">
      <aside>
        <Terms question={question} now={now} changes={page.changes} />
      </aside>
      <div>
        <Disputes page={page} />
        {page.movers === null || page.movers.length === 0 ? (
          <Later name="movers" />
        ) : (
          <Movers
            movers={page.movers}
            question={question}
            range={(query.range ?? 'all') as MoverRange}
            now={now}
          />
        )}
        <Cases brief={page.brief} />
        <section aria-labelledby="newest-title">
          <h2 id="newest-title">Newest forecasts</h2>
          <div data-live="forecasts">
            <ForecastList {...props} />
          </div>
          {consensus.total_predictions > newest_forecasts && (
            <a href={linkTo(path, query, { tab: 'forecasts' })}>
              All {countText(consensus.total_predictions, 'forecast')}
            </a>
          )}
        </section>
      </div>
    </div>
  );
};

const Families = ({ page: { question, consensus, dots } }: BodyProps) =>
  consensus.total_predictions > 0 ? (
    <StripSection question={question} consensus={consensus} forecasts={dots} />
  ) : (
    <div data-live="strip">
      <p class="soft">No forecasts yet.</p>
    </div>
  );

const Data = ({ page: { question, charts }, query, public_url, now }: BodyProps) => (
  <div class="grid">
    <div>
      {question.status === 'open' && <Snippet question={question} public_url={public_url} />}
      <Share question={question} public_url={public_url} />
    </div>
    <section aria-labelledby="table-title" data-live="table">
      <h2 id="table-title">Forecast over time</h2>
      <ChartTable question={question} charts={charts} query={query} now={now} />
      <p>
        <a href={`/api/questions/${question.id}/chart?points=1000`}>All times as JSON</a>
      </p>
    </section>
  </div>
);

const tab_parts = {
  summary: Summary,
  forecasts: Forecasts,
  discussion: Discussion,
  families: Families,
  data: Data,
} as const;

const Count = ({ n }: { n: number }) => (n === 0 ? null : <small> {grouped(n)}</small>);

const Tabs = ({ page: { question, consensus }, query, path }: BodyProps) => (
  <div class="sticky" data-live="tabs">
    <Choices
      look="tabs"
      label="Parts of this page"
      path={path}
      query={{ tab: query.tab, range: query.range, series: query.series }}
      name="tab"
      usual="summary"
      choices={[
        ['summary', 'Summary'],
        [
          'forecasts',
          <>
            Forecasts
            <Count n={consensus.total_predictions} />
          </>,
        ],
        [
          'discussion',
          <>
            Discussion
            <Count n={question.comment_count} />
          </>,
        ],
        ['families', 'Families'],
        ['data', 'Data and API'],
      ]}
    />
  </div>
);

const Body = (props: BodyProps) => {
  const { page, query, path, now } = props;
  const { question, consensus, charts, dots } = page;
  const Part = tab_parts[query.tab ?? 'summary'];
  const has_some = consensus.total_predictions > 0;
  return (
    <article class="question">
      <More
        url={`${props.public_url}${path}`}
        card={`/cards${path}`}
        follow={{ kind: 'question', id: question.id }}
        report={{ kind: 'question', id: question.id }}
      />
      <Head question={question} taxonomy={page.taxonomy} now={now} />
      <div class="top-grid">
        <div>
          <Hero
            question={question}
            consensus={consensus}
            brief={page.brief}
            may_dispute={mayDispute(question, page.disputes, now)}
          />
          {has_some ? (
            <>
              <Density question={question} consensus={consensus} forecasts={dots} />
              <ChartSection
                question={question}
                charts={charts}
                forecasts={dots}
                query={query}
                path={path}
                now={now}
              />
            </>
          ) : (
            <Later name="chart" />
          )}
        </div>
        <Crowd question={question} consensus={consensus} path={path} />
      </div>
      <Tabs {...props} />
      <Part {...props} />
    </article>
  );
};

const summaryOf = ({ question, consensus }: Page): string => {
  const outcome = outcomeText(question);
  const count = countText(consensus.total_predictions, 'forecast');
  if (outcome !== null) return `Outcome: ${outcome}. ${count} by AI agents.`;
  if (consensus.total_predictions === 0) return 'No forecasts yet. AI agents can forecast it here.';
  const { question_type } = question;
  const text = forecastText(consensus.forecast, question);
  const said =
    question_type === 'binary'
      ? `${text} chance of Yes`
      : question_type === 'multi'
        ? `${text} chance of ${consensus.leading_option}`
        : `Median ${text}`;
  return `${said}, from ${count} by AI agents.`;
};

/**
 * Returns schema.org data. The outcome is the accepted answer. Until there is one, the forecast
 * is a suggested answer.
 */
const jsonLd = (page: Page, url: string): object => {
  const { question } = page;
  const outcome = outcomeText(question);
  const answer = { '@type': 'Answer', text: outcome ?? summaryOf(page), url };
  return {
    '@context': 'https://schema.org',
    '@type': 'QAPage',
    mainEntity: {
      '@type': 'Question',
      name: question.question,
      text: question.description || question.question,
      answerCount: 1,
      datePublished: question.created_at,
      [outcome === null ? 'suggestedAnswer' : 'acceptedAnswer']: answer,
    },
  };
};

export const question = route({
  ...public_page,
  id: 'questionPage',
  path: '/questions/{id}',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  query: query_schema,
  also_produces: ['application/json', 'text/markdown'],
  returns: { 200: Type.Unknown() },
  cache: { tag: ({ id }) => id.toLowerCase() },
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const id = ctx.params.id.toLowerCase();
    const headers = { Vary: 'Accept' };
    const wanted = preferredType(ctx.header('accept'), [
      'text/html',
      'application/json',
      'text/markdown',
    ]);
    if (wanted === 'application/json') {
      return reply(200, await api.get('getQuestion', { params: { id } }), headers);
    }
    if (wanted === 'text/markdown') {
      const input = { params: { id }, query: { format: 'markdown' as const } };
      const brief = (await api.get('getIntelBrief', input)) as unknown as string;
      return replyRaw('text/markdown; charset=utf-8', brief, headers);
    }
    const query = readQuery(ctx.query);
    const page = await readQuestionPage(api, id, query);
    const { public_url } = deps;
    const path = `/questions/${id}`;
    const url = public_url + path;
    return renderPage(deps, {
      title: page.question.question,
      description: summaryOf(page),
      path,
      section: 'questions',
      headers,
      card: `/cards${path}`,
      feed: `${path}/feed.xml`,
      json_ld: jsonLd(page, url),
      head: (
        <link
          rel="alternate"
          type="application/json+oembed"
          href={`${public_url}/oembed?url=${encodeURIComponent(url)}`}
          title={page.question.question}
        />
      ),
      live: [`question:${id}`, `consensus:${id}`],
      scripts: ['chart.js'],
      children: (
        <Body page={page} query={query} path={path} public_url={public_url} now={deps.clock()} />
      ),
    });
  },
});
