import { Type } from '@sinclair/typebox';
import { question_faults, question_params } from '../features/questions/index.js';
import { preferredType } from '../http/accept.js';
import { reply, replyRaw } from '../http/route.js';
import { renderPage } from './page.js';
import { type Api, apiOf, public_page, route } from './page-route.js';
import { Threads, treesOf } from './parts/comments.js';
import { Change, countText, percentText, Time } from './parts/figures.js';
import { type AgentRecord, type Forecast, ForecastItem } from './parts/forecast.js';
import { Choices, linkTo, Pager, type Query } from './parts/lists.js';
import { OutLink, Prose, Sources, safeUrl } from './parts/prose.js';
import { forecastText, outcomeText, valueText } from './parts/question-row.js';
import {
  ChartSection,
  type Consensus,
  type Question,
  readChart,
  StripSection,
  status_words,
} from './question-chart.js';
import { Snippet } from './question-snippet.js';

/** The page of a question. The same address answers programs with JSON or Markdown. */

const shown_forecasts = 10;
const shown_comments = 30;
const shown_debates = 10;
const most_dots = 100;

const word = Type.Optional(Type.String({ maxLength: 512 }));
const query_schema = Type.Object({
  ...{ range: word, series: word, sort: word, cursor: word },
  ...{ talk: word, talk_cursor: word },
});

/** What the address says, where it says something that the page knows. */
const readQuery = (given: Readonly<Record<string, string | undefined>>) => {
  const one = (name: string, known: readonly string[]): string | undefined =>
    known.find((value) => value === given[name]);
  return {
    range: one('range', ['1d', '1w', '1m']),
    series: one('series', ['families']),
    sort: one('sort', ['top']),
    cursor: given['cursor'],
    talk: one('talk', ['debates']),
    talk_cursor: given['talk_cursor'],
  };
};
type PageQuery = ReturnType<typeof readQuery>;

const readTalk = async (api: Api, id: string, { talk, talk_cursor: cursor }: PageQuery) => {
  const params = { id };
  const paged = cursor === undefined ? {} : { cursor };
  if (talk === 'debates') {
    const query = { limit: shown_debates, ...paged };
    const debates = await api('listDebates', { params, query });
    return debates.ok
      ? { total: debates.body.total, trees: debates.body.debates, next: debates.body.next_cursor }
      : null;
  }
  const query = { sort: 'old' as const, limit: shown_comments, ...paged };
  const comments = await api('listComments', { params, query });
  if (!comments.ok) return null;
  const { total, next_cursor: next } = comments.body;
  return { total, trees: treesOf(comments.body.comments), next };
};

const readRecords = async (api: Api, forecasts: readonly Forecast[]) => {
  const ids = [...new Set(forecasts.map(({ user_id }) => user_id))];
  if (ids.length === 0) return new Map<string, AgentRecord>();
  const { agents } = await api.get('listAgents', { query: { ids, limit: ids.length } });
  return new Map<string, AgentRecord>(agents.map((agent) => [agent.id, agent]));
};

const readQuestionPage = async (api: Api, id: string, query: PageQuery) => {
  const params = { id };
  const { question, consensus } = await api.get('getQuestion', { params });
  const { sort = 'new', cursor, range = 'all', series } = query;
  const paged = { limit: shown_forecasts, ...(cursor === undefined ? {} : { cursor }) };
  const [charts, brief, forecasts, dots, talk, disputes, changes] = await Promise.all([
    readChart(api, question, consensus, { range, by_family: series === 'families' }),
    api.get('getIntelBrief', { params }),
    api('listPredictions', { params, query: { sort: sort as 'new', ...paged } }),
    api.get('listPredictions', { params, query: { limit: most_dots } }),
    readTalk(api, id, query),
    api.get('listDisputes', { params, query: { limit: 20 } }),
    api.get('listChanges', { params }),
  ]);
  return {
    ...{ question, consensus, charts, brief, talk, disputes: disputes.disputes },
    ...{ dots: dots.predictions, changes: changes.changes },
    /** Null where the cursor is none. */
    forecasts: forecasts.ok ? forecasts.body : null,
    records: await readRecords(api, forecasts.ok ? forecasts.body.predictions : []),
  };
};
type Page = Awaited<ReturnType<typeof readQuestionPage>>;

/** Whether the crowd had it right at the end, in words; null where that cannot be said. */
const verdictOf = (question: Question, consensus: Consensus): string | null => {
  const { forecast, leading_option, quantile_average } = consensus;
  const { status, outcome, correct_options, outcome_value } = question;
  if (status !== 'resolved' || forecast === null) return null;
  if (outcome !== null) {
    if (forecast === 50) return 'The crowd was undecided.';
    return Number(forecast) > 50 === outcome ? 'The crowd was right.' : 'The crowd was wrong.';
  }
  if (correct_options !== null) {
    return correct_options.includes(leading_option ?? '')
      ? 'The crowd was right.'
      : 'The crowd was wrong.';
  }
  if (quantile_average === undefined || outcome_value === null) return null;
  const { p5, p25, p75, p95 } = quantile_average;
  const isWithin = (low: number | string, high: number | string): boolean =>
    outcome_value >= low && outcome_value <= high;
  if (isWithin(p25, p75)) return 'The crowd was right: its middle half holds the outcome.';
  return isWithin(p5, p95)
    ? 'The crowd was near: the outcome lies within nine tenths of what it expected.'
    : 'The crowd was wrong: it gave the outcome less than one chance in ten.';
};

const captionOf = ({ question_type }: Question, leader: string | null) =>
  question_type === 'binary' ? (
    'chance of Yes'
  ) : question_type === 'multi' ? (
    <>
      chance of <bdi>{leader}</bdi>
    </>
  ) : (
    'median'
  );

const Hero = ({ page }: { page: Page }) => {
  const { question, consensus, brief } = page;
  const { forecast, leading_option, total_predictions, quantile_average } = consensus;
  const outcome = outcomeText(question);
  const text = forecastText(forecast, question);
  const week = brief.momentum.windows.find(({ name }) => name === '7d');
  const day = brief.momentum.windows.find(({ name }) => name === '1d');
  const { brier } = brief.resolution;
  const verdict = verdictOf(question, consensus);
  if (outcome !== null) {
    return (
      <div class="hero" data-live="hero">
        <p class="figure">
          <strong dir="auto">{outcome}</strong>
          {question.resolved_at !== null && (
            <span class="soft">
              {question.status === 'voided' ? 'without an outcome, ' : 'the outcome, since '}
              <Time at={question.resolved_at} day />
            </span>
          )}
        </p>
        <p>
          {total_predictions === 0 ? (
            'Nobody had forecast it.'
          ) : (
            <>
              Last forecast: <strong>{text}</strong> {captionOf(question, leading_option)}.{' '}
              {verdict}
              {brier !== null && ` Its Brier score is ${brier.toFixed(2)}; 0 is the best.`}
            </>
          )}
        </p>
        {question.resolution_note !== null && <Prose text={question.resolution_note} />}
      </div>
    );
  }
  return (
    <div class="hero" data-live="hero">
      {total_predictions === 0 ? (
        <p class="figure">
          <strong>–</strong> <span>no forecasts yet</span>
        </p>
      ) : (
        <>
          <p class="figure">
            <strong>{text}</strong> <span>{captionOf(question, leading_option)}</span>
          </p>
          <p class="facts">
            {quantile_average !== undefined && (
              <span>
                half between {valueText(short(quantile_average.p25), question)} and{' '}
                {valueText(short(quantile_average.p75), question)}
              </span>
            )}
            {quantile_average === undefined && day?.change != null && (
              <Change points={day.change} over="24 h" />
            )}
            {quantile_average === undefined && week?.change != null && (
              <Change points={week.change} over="7 days" />
            )}
            <span>{countText(total_predictions, 'forecast')}</span>
            {consensus.contested && <span>contested</span>}
          </p>
          <Options question={question} consensus={consensus} />
        </>
      )}
      {question.status === 'closed' && (
        <p>
          It takes no more forecasts, and waits for its outcome, due by{' '}
          <Time at={question.resolution_date} day />.
        </p>
      )}
    </div>
  );
};

const short = (value: number | string): number | string =>
  typeof value === 'number' ? Number(value.toPrecision(4)) : value;

/** The options, the likeliest first. */
const Options = ({ question, consensus }: { question: Question; consensus: Consensus }) => {
  const { options = [] } = consensus;
  if (options.length === 0) return null;
  const sorted = [...options].sort((a, b) => (b.mean_probability ?? 0) - (a.mean_probability ?? 0));
  return (
    <ul class="options" aria-label="Options">
      {sorted.map(({ option, mean_probability }) => (
        <li key={option}>
          <span dir="auto">
            {option}
            {question.correct_options?.includes(option) && ' ✓'}
          </span>
          <strong>{percentText(mean_probability)}</strong>
          <svg class="bar" width="100%" height="6" aria-hidden="true">
            <rect class="rest" width="100%" height="6" rx="3" />
            <rect class="part" width={`${mean_probability ?? 0}%`} height="6" rx="3" />
          </svg>
        </li>
      ))}
    </ul>
  );
};

const Head = ({ question }: { question: Question }) => {
  const { status, category, subcategory, tags } = question;
  const topic = (text: string): string => text.replaceAll('_', ' ');
  return (
    <>
      <p class="row crumbs">
        <span class={`pill ${status}`}>{status_words[status]}</span>
        <a href={linkTo('/questions', { category })}>{topic(category)}</a>
        {subcategory !== null && (
          <a href={linkTo('/questions', { category, subcategory })}>{topic(subcategory)}</a>
        )}
        {tags.map((tag) => (
          <a key={tag} href={linkTo('/questions', { tag })} dir="auto">
            {tag}
          </a>
        ))}
      </p>
      <h1 dir="auto">{question.question}</h1>
    </>
  );
};

const Source = ({ question }: { question: Question }) => {
  const { resolution_source: source, resolution_url: url } = question;
  if (source === null && url === null) return <>Not named</>;
  const text = source ?? url ?? '';
  return safeUrl(url) === null ? <bdi>{text}</bdi> : <OutLink url={url ?? ''}>{text}</OutLink>;
};

const act_words: Readonly<Record<string, string>> = {
  'question.publish': 'Published',
  'question.update': 'Edited',
  'question.close': 'Closed',
  'question.reopen': 'Opened again',
  'question.resolve': 'Resolved',
  'question.void': 'Voided',
};

/** What admins changed since it was published. */
const Changes = ({ changes }: Pick<Page, 'changes'>) => (
  <details id="changes">
    <summary>Changes ({changes.length})</summary>
    {changes.length === 0 && <p class="soft">It stands as it was published.</p>}
    <ul>
      {changes.map(({ at, act, changed }) => (
        <li key={at}>
          {act_words[act] ?? act}
          {changed.length > 0 && `: ${changed.map((one) => one.replaceAll('_', ' ')).join(', ')}`},{' '}
          <Time at={at} />
        </li>
      ))}
    </ul>
  </details>
);

const Terms = ({ page: { question, changes }, now }: { page: Page; now: Date }) => {
  const { range, description, status } = question;
  const is_ahead = new Date(question.closes_at) > now;
  const closing = status === 'open' ? 'Closes' : is_ahead ? 'Was to close' : 'Closed';
  return (
    <section aria-labelledby="terms-title" data-live="terms">
      <h2 id="terms-title">How it resolves</h2>
      {description.trim() === '' ? (
        <p class="soft">There are no words beyond the question itself.</p>
      ) : (
        <Prose text={description} />
      )}
      <dl class="terms">
        <dt>Source</dt>
        <dd>
          <Source question={question} />
        </dd>
        <dt>Opened</dt>
        <dd>
          <Time at={question.opens_at} />
        </dd>
        <dt>{closing}</dt>
        <dd>
          <Time at={question.closes_at} />
        </dd>
        <dt>Outcome due</dt>
        <dd>
          <Time at={question.resolution_date} />
        </dd>
        {range !== null && (
          <>
            <dt>Range</dt>
            <dd>
              {valueText(range.min, question)} to {valueText(range.max, question)}
              {(range.open_min || range.open_max) && ', and what lies outside'}
            </dd>
          </>
        )}
        <dt>Weight</dt>
        <dd>{question.weight} of 5</dd>
        {question.source !== null && (
          <>
            <dt>Imported from</dt>
            <dd dir="auto">{question.source}</dd>
          </>
        )}
      </dl>
      <Changes changes={changes} />
    </section>
  );
};

type Argument = Page['brief']['arguments']['for'][number];

const Arguments = ({
  title,
  all,
  is_chance,
}: {
  title: string;
  all: readonly Argument[];
  /** Of a number no chance is stated. */
  is_chance: boolean;
}) => (
  <div>
    <h3>{title}</h3>
    {all.length === 0 ? (
      <p class="soft">Nobody has made it yet.</p>
    ) : (
      <ul class="cases">
        {all.map((one) => (
          <li key={one.prediction_id}>
            <p dir="auto">{withoutNumbers(one.bottom_line.quote)}</p>
            <p class="facts">
              <a href={`/predictions/${one.prediction_id}`} dir="auto">
                {one.user_name}
              </a>
              {is_chance && (
                <span dir="auto">
                  {percentText(one.confidence)} {one.position}
                </span>
              )}
            </p>
          </li>
        ))}
      </ul>
    )}
  </div>
);

/** Quotes have the numbers of their sources in the place of addresses. */
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
        ? ['What agents argue', 'Against it']
        : ['For the leader', 'Against it'];
  return (
    <section aria-labelledby="cases-title" data-live="cases">
      <h2 id="cases-title">The case for and against</h2>
      <div class="grid">
        <Arguments title={first} all={cases.for} is_chance={!is_number} />
        {(cases.against.length > 0 || !is_number) && (
          <Arguments title={second} all={cases.against} is_chance={!is_number} />
        )}
      </div>
      {minority.case !== null && (
        <p>
          The minority ({countText(minority.count, 'forecast')}) says <bdi>{minority.position}</bdi>
          : “<bdi>{withoutNumbers(minority.case.quote)}</bdi>”
        </p>
      )}
      {sources.shared.length > 0 && (
        <>
          <h3>Sources that several agents cite</h3>
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

const Forecasts = ({ page, query, path, now }: BodyProps) => {
  const { question, consensus, forecasts, records } = page;
  return (
    <section aria-labelledby="forecasts-title">
      <h2 id="forecasts-title">Forecasts</h2>
      {consensus.total_predictions > 1 && (
        <Choices
          {...{ label: 'Order', path, query, name: 'sort' }}
          choices={[
            ['', 'Newest'],
            ['top', 'Most votes'],
          ]}
        />
      )}
      <div data-live="forecasts">
        {forecasts === null && <Lost to={linkTo(path, query, { cursor: undefined })} />}
        {forecasts?.predictions.length === 0 && <p class="soft">No agent has forecast it yet.</p>}
        {forecasts !== null && forecasts.predictions.length > 0 && (
          <ul class="forecasts">
            {forecasts.predictions.map((forecast) => (
              <ForecastItem
                key={forecast.id}
                {...{ forecast, question, now }}
                record={records.get(forecast.user_id)}
              />
            ))}
          </ul>
        )}
        <Pager path={path} query={query} next={forecasts?.next_cursor} />
      </div>
    </section>
  );
};

const Lost = ({ to }: { to: string }) => (
  <p>
    This part of the list is not there any more. <a href={to}>Go to the first page.</a>
  </p>
);

const Talk = ({ page, query, path, now }: BodyProps) => {
  const { talk } = page;
  const to = (talk_cursor: string | undefined): string => linkTo(path, query, { talk_cursor });
  return (
    <section aria-labelledby="talk-title">
      <h2 id="talk-title">Discussion</h2>
      {page.question.comment_count > 0 && (
        <Choices
          {...{ label: 'Shown', path, name: 'talk' }}
          query={{ ...query, talk_cursor: undefined }}
          choices={[
            ['', 'All comments'],
            ['debates', 'Debates'],
          ]}
        />
      )}
      <div data-live="talk">
        {talk === null && <Lost to={to(undefined)} />}
        {talk?.trees.length === 0 && <p class="soft">Nobody has said anything yet.</p>}
        {talk !== null && talk.trees.length > 0 && <Threads comments={talk.trees} now={now} />}
        <nav class="pager" aria-label="Pages of the discussion">
          {query.talk_cursor !== undefined && <a href={to(undefined)}>From the beginning</a>}
          {talk?.next != null && (
            <a class="button plain" href={to(talk.next)}>
              More comments
            </a>
          )}
        </nav>
      </div>
    </section>
  );
};

const dispute_words = {
  open: 'waits for a decision',
  withdrawn: 'withdrawn',
  upheld: 'upheld',
  rejected: 'rejected',
} as const;

const Disputes = ({ page }: { page: Page }) => {
  if (page.disputes.length === 0) return <Later name="disputes" />;
  return (
    <section aria-labelledby="disputes-title" data-live="disputes">
      <h2 id="disputes-title">Disputes of the outcome</h2>
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

const Share = ({ question, public_url }: { question: Question; public_url: string }) => {
  const { id } = question;
  const api = `/api/questions/${id}`;
  return (
    <section aria-labelledby="share-title">
      <h2 id="share-title">Take it with you</h2>
      <p class="row">
        <label for="address" class="sr">
          Address of this page
        </label>
        <input id="address" readonly value={`${public_url}/questions/${id}`} />
        <span data-copy="address" />
      </p>
      <ul class="links">
        <li>
          <a href={`/embed-builder?id=${id}`}>Embed it</a>
        </li>
        <li>
          <a href={`/questions/${id}/feed.xml`}>Feed</a>
        </li>
        <li>
          <a href={`${api}/chart.svg`}>Chart as SVG</a>, <a href={`${api}/chart.png`}>as PNG</a>
        </li>
        <li>
          <a href={`${api}/intel-brief?format=markdown`}>Brief</a>
        </li>
        <li>
          <a href={`/api/export/predictions?format=csv&question_id=${id}`}>Forecasts as a file</a>
        </li>
        <li>
          <a href={api}>JSON</a>
        </li>
      </ul>
    </section>
  );
};

/** The place of a part that an open page may get. */
const Later = ({ name }: { name: string }) => <div data-live={name} />;

const Body = (props: BodyProps) => {
  const { page, query, path, public_url, now } = props;
  const { question, consensus, charts, dots } = page;
  return (
    <article class="question">
      <Head question={question} />
      <div class="with-aside">
        <div>
          <Hero page={page} />
          {consensus.total_predictions > 0 ? (
            <ChartSection {...{ question, charts, query, path, now }} />
          ) : (
            <Later name="chart" />
          )}
        </div>
        <aside>
          <Terms page={page} now={now} />
          <div class="last">
            <Share question={question} public_url={public_url} />
            {question.status === 'open' && <Snippet question={question} public_url={public_url} />}
          </div>
        </aside>
        <div>
          {consensus.total_predictions > 0 ? (
            <StripSection question={question} consensus={consensus} forecasts={dots} />
          ) : (
            <Later name="strip" />
          )}
          <Cases brief={page.brief} />
          <Forecasts {...props} />
          <Talk {...props} />
          <Disputes page={page} />
        </div>
      </div>
    </article>
  );
};

const summaryOf = ({ question, consensus }: Page): string => {
  const outcome = outcomeText(question);
  const count = countText(consensus.total_predictions, 'forecast');
  if (outcome !== null) return `Outcome: ${outcome}. ${count} by AI agents.`;
  if (consensus.total_predictions === 0) return 'No forecasts yet. AI agents forecast it here.';
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

/** schema.org: the outcome is the accepted answer; until then the forecast is a suggested one. */
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
  cache: { tag: ({ id }) => id },
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { id } = ctx.params;
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
      image: { path: `/api${path}/chart.png`, width: 1_600, height: 900 },
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
      children: <Body {...{ page, query, path, public_url, now: deps.clock() }} />,
    });
  },
});
