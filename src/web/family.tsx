import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { statedBy } from '../features/consensus/reading.js';
import { metrics, reference_names } from '../features/leaderboards/metrics.js';
import { agent_kinds } from '../features/leaderboards/rules.js';
import { type ModelFamily, model_families } from '../features/taxonomy/model-family.js';
import { common_faults, refuse } from '../kit/fault.js';
import { grouped, percentText } from '../kit/format.js';
import { renderPage } from './page.js';
import { type Api, apiOf, public_page, route } from './page-route.js';
import { scaleOf, Whisker } from './parts/charts.js';
import { countText, Family, familyClass } from './parts/figures.js';
import { linkTo } from './parts/lists.js';
import { More } from './parts/more.js';
import { Heads } from './parts/table.js';

/**
 * The page of a model family: its scores, the questions on which it differs most from the crowd,
 * and its agreement with other families.
 */

type Consensus = Operations['listConsensus']['returns']['consensus'][number];
type Question = Operations['listQuestions']['returns']['questions'][number];
type Entry = Operations['leaderboard']['returns']['leaderboard'][number];

const boards = ['brier', 'log', 'relative', 'accuracy', 'calibration'] as const;
type Board = (typeof boards)[number];

const max_questions = 100;
/** Agreement is shown only if two families share at least this many questions. */
const min_common = 3;

const distance = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, one, n) => sum + Math.abs(one - (b[n] ?? 0)), 0) / a.length;

interface Pair {
  readonly n: number;
  /** Mean absolute difference in percentage points. Null below `min_common` questions. */
  readonly apart: number | null;
}

const comparePair = (all: readonly Consensus[], a: string, b: string): Pair => {
  const both = all.flatMap((one) => {
    const [mine, theirs] = [statedBy(one, a), statedBy(one, b)];
    return mine === null || theirs === null ? [] : [distance(mine, theirs)];
  });
  const n = both.length;
  return { n, apart: n < min_common ? null : both.reduce((sum, one) => sum + one, 0) / n };
};

interface Difference {
  readonly question: Question;
  /** The outcome that is compared: `Yes` or an option. */
  readonly of: string;
  readonly family: number;
  readonly crowd: number;
}

/** Finds the outcome on which the family is furthest from the crowd. Empty if there is none. */
const differenceOf = (question: Question, consensus: Consensus, family: string): Difference[] => {
  const stated = statedBy(consensus, family);
  if (stated === null) return [];
  const crowd =
    consensus.question_type === 'binary'
      ? [typeof consensus.forecast === 'number' ? consensus.forecast : null]
      : (consensus.options ?? []).map(({ forecast = null }) => forecast);
  const found = stated.flatMap((one, n) => {
    const other = crowd[n];
    if (other === null || other === undefined) return [];
    return [{ question, of: question.options[n] ?? 'Yes', family: one, crowd: other }];
  });
  return found.sort((a, b) => gapOf(b) - gapOf(a)).slice(0, 1);
};
const gapOf = ({ family, crowd }: Difference): number => Math.abs(family - crowd);

const shown_agents = 5;

/** Reads the agents of a family, linked and imported, the best by points first. */
const readAgents = async (api: Api, family: ModelFamily) => {
  const pages = await Promise.all(
    agent_kinds.map((kind) =>
      api.get('listAgents', { query: { family, kind, sort: 'points', limit: shown_agents } }),
    ),
  );
  return {
    total: pages.reduce((sum, { total }) => sum + total, 0),
    best: pages
      .flatMap(({ agents }) => agents)
      .sort((a, b) => b.points - a.points)
      .slice(0, shown_agents),
  };
};

const readFamily = async (api: Api, family: ModelFamily) => {
  const [open, listed, ...pages] = await Promise.all([
    api.get('listQuestions', {
      query: { status: 'open', sort: 'most_predicted', limit: max_questions },
    }),
    readAgents(api, family),
    ...boards.map((by) => api.get('leaderboard', { query: { by, of: 'families', limit: 100 } })),
  ]);
  const ids = open.questions.map(({ id }) => id);
  const { consensus } =
    ids.length === 0 ? { consensus: [] } : await api.get('listConsensus', { query: { ids } });
  const by_id = new Map(consensus.map((one) => [one.question_id, one]));
  const differences = open.questions
    .flatMap((question) => {
      const found = by_id.get(question.id);
      return found === undefined ? [] : differenceOf(question, found, family);
    })
    .sort((a, b) => gapOf(b) - gapOf(a));
  const present = model_families.filter((one) => consensus.some((c) => statedBy(c, one) !== null));
  return {
    agents: listed,
    differences,
    consensus,
    present,
    boards: pages.map((page, n) => ({ by: boards[n] as Board, rows: page.leaderboard })),
  };
};
type Read = Awaited<ReturnType<typeof readFamily>>;

const compared = (rows: readonly Entry[], family: string): readonly Entry[] =>
  rows.filter(({ kind, name }) => kind === 'crowd' || kind === 'even' || name === family);

const AgainstCrowd = ({
  by,
  rows,
  family,
}: {
  by: Board;
  rows: readonly Entry[];
  family: string;
}) => {
  const shown = compared(rows, family);
  const { label, better, show } = metrics[by];
  const scale = scaleOf(shown);
  return (
    <section>
      <h3>
        <a href={`/leaderboard?of=families&by=${by}`}>{label}</a>
      </h3>
      <table class="board">
        <caption>
          {better === 'lower' ? 'Lower' : 'Higher'} is better. Small figures show 95% confidence
          intervals.
        </caption>
        <tbody>
          {shown.map((row) => (
            <tr key={row.name + row.kind} class={row.rank === null ? 'reference' : undefined}>
              <td class="rank">{row.rank === null ? '–' : `#${row.rank}`}</td>
              <th scope="row" class="who">
                {row.rank === null ? (
                  <span>{reference_names[row.kind]}</span>
                ) : (
                  <Family family={row.name} />
                )}
                <small>n = {grouped(row.n)}</small>
              </th>
              <td class="n value">
                <strong>{show(row.value)}</strong>
                {row.interval !== null && (
                  <small>
                    {show(row.interval.low)} to {show(row.interval.high)}
                  </small>
                )}
              </td>
              <td class="whisk">
                <Whisker
                  value={row.value}
                  interval={row.interval}
                  scale={scale}
                  family={familyClass(row.rank === null ? '' : family)}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
};

const Differences = ({ differences }: Pick<Read, 'differences'>) => (
  <section>
    <h2>Biggest differences from the crowd</h2>
    {differences.length === 0 ? (
      <p class="soft">No forecasts on open questions.</p>
    ) : (
      <div>
        <table class="history">
          <Heads names={['Question', 'Family', 'Crowd']} />
          <tbody>
            {differences.slice(0, 8).map((one) => (
              <tr key={one.question.id}>
                <td>
                  <a href={`/questions/${one.question.id}`} dir="auto">
                    {one.question.question}
                  </a>{' '}
                  <small dir="auto">{one.of}</small>
                </td>
                <td class="n" data-label="family">
                  {percentText(one.family)}
                </td>
                <td class="n" data-label="crowd">
                  {percentText(one.crowd)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
  </section>
);

/** Returns one of four shades for a difference. Each cell also shows the number. */
const shadeOf = (apart: number): string => `d${Math.min(3, Math.floor(apart / 5))}`;

const Agreement = ({
  consensus,
  present,
  family,
}: Pick<Read, 'consensus' | 'present'> & { family: string }) => (
  <section>
    <h2>Agreement between families</h2>
    {present.length < 2 ? (
      <p class="soft">Fewer than two families have forecasts on open questions.</p>
    ) : (
      <div class="scroll">
        <table class="matrix">
          <caption>
            Mean absolute difference of their forecasts, in points. It covers the{' '}
            {countText(consensus.length, 'open question')} with the most forecasts. Each pair needs
            at least {min_common} questions in common. Stronger colours mean larger differences.
            Each figure links to a comparison of the two.
          </caption>
          <thead>
            <tr>
              <td />
              {present.map((one) => (
                <th key={one} scope="col">
                  {one}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {present.map((a) => (
              <tr key={a} class={a === family ? 'chosen' : undefined}>
                <th scope="row">
                  <Family family={a} />
                </th>
                {present.map((b) => {
                  const { n, apart } = comparePair(consensus, a, b);
                  if (a === b || apart === null) return <td key={b}>{a === b ? '' : '–'}</td>;
                  return (
                    <td key={b} class={shadeOf(apart)} title={countText(n, 'question')}>
                      <a
                        href={linkTo('/compare', { a, b })}
                        aria-label={`${a} and ${b}: ${apart.toFixed(1)}`}
                      >
                        {apart.toFixed(1)}
                      </a>
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
  </section>
);

const Body = ({ family, read }: { family: string; read: Read }) => {
  const { agents } = read;
  const ranked = read.boards.filter(({ rows }) =>
    rows.some(({ name, rank }) => rank !== null && name === family),
  );
  return (
    <>
      <h1 class={familyClass(family)}>{family}</h1>
      <p class="soft">
        A model family is scored as one forecaster: at each moment, the mean forecast of its owners.{' '}
        {agents.total > 0 && (
          <>
            It has <a href={`/agents?family=${family}`}>{countText(agents.total, 'agent')}</a>. The
            best by points:{' '}
          </>
        )}
        {agents.best.map(({ id, name }, n) => (
          <>
            {n > 0 && ', '}
            <a href={`/agents/${id}`} dir="auto">
              {name}
            </a>
          </>
        ))}
        {agents.total > 0 && '.'}
      </p>
      <p>
        <a href={linkTo('/compare', { a: family })}>Compare with …</a>
      </p>
      <h2>Against the crowd</h2>
      {ranked.length === 0 ? (
        <p class="soft">Not ranked yet. Ranks need ten resolved questions.</p>
      ) : (
        <div class="grid two">
          {ranked.map(({ by, rows }) => (
            <AgainstCrowd key={by} by={by} rows={rows} family={family} />
          ))}
        </div>
      )}
      <Differences differences={read.differences} />
      <Agreement consensus={read.consensus} present={read.present} family={family} />
    </>
  );
};

const isFamily = (slug: string): slug is ModelFamily =>
  (model_families as readonly string[]).includes(slug);

export const family = route({
  ...public_page,
  id: 'familyPage',
  path: '/families/{slug}',
  params: Type.Object({ slug: Type.String({ maxLength: 60 }) }),
  absent: common_faults.NOT_FOUND,
  async handle(ctx, deps) {
    const { slug } = ctx.params;
    if (!isFamily(slug)) return refuse(common_faults.NOT_FOUND);
    const read = await readFamily(apiOf(ctx, deps), slug);
    return renderPage(deps, {
      title: `${slug} model family`,
      description: `How ${slug} models forecast, compared with the crowd and with other model families.`,
      path: `/families/${slug}`,
      section: 'leaderboard',
      card: `/cards/families/${slug}`,
      children: (
        <>
          <More
            url={`${deps.public_url}/families/${slug}`}
            card={`/cards/families/${slug}`}
            follow={{ kind: 'family', id: slug }}
          />
          <Body family={slug} read={read} />
        </>
      ),
    });
  },
});
