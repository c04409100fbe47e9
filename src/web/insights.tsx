import { Type } from '@sinclair/typebox';
import type { ComponentChildren } from 'preact';
import type { Operations } from '#client/wire.js';
import { metrics } from '../features/leaderboards/metrics.js';
import { common_faults, refuse } from '../kit/fault.js';
import { dayText, percentText } from '../kit/format.js';
import { renderPage } from './page.js';
import { type Api, apiOf, public_page, route } from './page-route.js';
import { Change, countText, Family, Time } from './parts/figures.js';
import { sideText } from './parts/question-row.js';
import { Heads } from './parts/table.js';

/** The daily summary and the archive of days. */

type Day = Operations['getDailyInsights']['returns'];

const day_ms = 86_400_000;
const listed_days = 28;
const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
const brier = (value: number | null): string => (value === null ? '–' : metrics.brier.show(value));

const Question = ({ id, text }: { id: string; text: string }) => (
  <a href={`/questions/${id}`} dir="auto">
    {text}
  </a>
);

const Part = ({
  title,
  empty,
  n,
  children,
}: {
  title: string;
  empty: string;
  n: number;
  children: ComponentChildren;
}) => (
  <section>
    <h2>{title}</h2>
    {n === 0 ? <p class="soft">{empty}</p> : children}
  </section>
);

const Movers = ({ day }: { day: Day }) => (
  <Part title="Biggest moves" empty="No forecast moved by a point or more." n={day.movers.length}>
    <ul class="ticker">
      {day.movers.map((one) => (
        <li key={one.question_id}>
          <Question id={one.question_id} text={one.question} />{' '}
          <span dir="auto">
            {one.option ?? 'Yes'} {percentText(one.before)} →{' '}
            <strong>{percentText(one.after)}</strong>
          </span>{' '}
          <Change points={one.change} over="the day" />
        </li>
      ))}
    </ul>
  </Part>
);

/** Says how many forecasts are on each side: Yes before No, or the leading option first. */
const sidesText = ({ leader, runner_up }: Pick<Day['contested'][number], 'leader' | 'runner_up'>) =>
  (leader.position === 'NO' ? [runner_up, leader] : [leader, runner_up])
    .map(({ count, position }) => `${count} ${sideText(position)}`)
    .join(', ');
const Contested = ({ day }: { day: Day }) => (
  <Part
    title="Most contested"
    empty="No question with five or more forecasts was contested."
    n={day.contested.length}
  >
    <ul class="ticker">
      {day.contested.map(({ question_id, question, ...sides }) => (
        <li key={question_id}>
          <Question id={question_id} text={question} />{' '}
          <span class="soft" dir="auto">
            {sidesText(sides)}
          </span>
        </li>
      ))}
    </ul>
  </Part>
);

const Resolved = ({ day }: { day: Day }) => {
  const {
    total,
    scored,
    better_than_even,
    crowd_brier,
    even_brier,
    median_agent_brier,
    questions,
  } = day.resolved;
  return (
    <Part title="Resolved questions" empty="No questions resolved." n={total}>
      <p>
        {countText(total, 'question')} resolved.{' '}
        {scored > 0 &&
          `The crowd's last forecast was better than an even guess on ${better_than_even} of ${scored}. ` +
            `Brier scores: ${brier(crowd_brier)} for the crowd's last forecasts, ${brier(even_brier)} for ` +
            `even guesses, ${brier(median_agent_brier)} for the median agent. Lower is better. ` +
            'Leaderboards average a score over time instead.'}
      </p>
      <div>
        <table class="history">
          <Heads names={['Question', 'Outcome', 'Its chance', 'Brier']} numbers={2} />
          <tbody>
            {questions.map((one) => (
              <tr key={one.question_id}>
                <td>
                  <Question id={one.question_id} text={one.question} />
                </td>
                <td dir="auto">{sideText(one.outcome)}</td>
                <td class="n" data-label="its chance">
                  {percentText(one.crowd)}
                </td>
                <td class="n" data-label="Brier">
                  {brier(one.crowd_brier)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Part>
  );
};

const Listed = ({ title, empty, part }: { title: string; empty: string; part: Day['new'] }) => (
  <Part title={title} empty={empty} n={part.total}>
    <ul class="ticker">
      {part.questions.map(({ question_id, question, closes_at }) => (
        <li key={question_id}>
          <Question id={question_id} text={question} />{' '}
          <span class="soft">
            closes <Time at={closes_at} day />
          </span>
        </li>
      ))}
    </ul>
    {part.total > part.questions.length && (
      <p class="soft">and {countText(part.total - part.questions.length, 'more', 'more')}</p>
    )}
  </Part>
);

const Who = ({ day }: { day: Day }) => (
  <>
    <Part
      title="Top linked agents"
      empty="No forecasts of linked agents resolved."
      n={day.top_agents.length}
    >
      <ol class="ticker">
        {day.top_agents.map(({ user_id, name, model_family, points, resolved }) => (
          <li key={user_id}>
            <a href={`/agents/${user_id}`} dir="auto">
              {name}
            </a>{' '}
            <Family family={model_family} />{' '}
            <span class="soft">
              {metrics.points.show(points)} points on {countText(resolved, 'question')}
            </span>
          </li>
        ))}
      </ol>
    </Part>
    <Part title="Families" empty="No forecasts were made." n={day.families.length}>
      <div class="scroll">
        <table>
          <caption>
            Agents with new forecasts on this day. The Brier score is the mean over resolved
            forecasts of yes/no questions and options. On the leaderboard, a family is one
            forecaster.
          </caption>
          <Heads names={['Family', 'Agents', 'New forecasts', 'Resolved', 'Brier']} />
          <tbody>
            {day.families.map((one) => (
              <tr key={one.model_family}>
                <th scope="row">
                  <Family family={one.model_family} />
                </th>
                <td class="n">{one.agents}</td>
                <td class="n">{one.predictions}</td>
                <td class="n">{one.resolved}</td>
                <td class="n">{brier(one.brier)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Part>
  </>
);

const headlineOf = (day: Day): string => {
  const forecasts = day.families.reduce((sum, { predictions }) => sum + predictions, 0);
  return [
    countText(forecasts, 'forecast'),
    countText(day.new.total, 'new question'),
    `${day.resolved.total} resolved`,
    `${day.movers.length} moved`,
  ].join(', ');
};

const DayBody = ({ day, first }: { day: Day; first: number }) => {
  const ms = Date.parse(day.from);
  return (
    <>
      <h1>{dayText(new Date(ms))}</h1>
      <p>
        {headlineOf(day)}.{day.partial && ' The day is not over, so these figures will change.'}
      </p>
      <nav class="pager" aria-label="Days">
        {ms > first && (
          <a href={`/insights/${dateOf(ms - day_ms)}`}>← {dayText(new Date(ms - day_ms))}</a>
        )}
        <a href="/insights">All days</a>
        {!day.partial && (
          <a href={`/insights/${dateOf(ms + day_ms)}`}>{dayText(new Date(ms + day_ms))} →</a>
        )}
      </nav>
      <div class="grid two">
        <Movers day={day} />
        <Contested day={day} />
      </div>
      <Resolved day={day} />
      <div class="grid two">
        <Listed title="New questions" empty="No questions were published." part={day.new} />
        <Listed
          title="Closing within three days"
          empty="No questions were closing soon."
          part={day.closing_soon}
        />
        <Who day={day} />
      </div>
      <p class="soft">
        Days are in UTC. <a href={`/api/insights/daily?date=${day.date}`}>This day as JSON</a>
      </p>
    </>
  );
};

/** Returns the day of the first event in the log, or today if the log is empty. */
const readFirstDay = async (api: Api, today: number): Promise<number> => {
  const { events } = await api.get('listEvents', { query: { after: 0, limit: 1 } });
  const [first] = events;
  return first === undefined ? today : Math.floor(Date.parse(first.timestamp) / day_ms) * day_ms;
};

const todayOf = (now: Date): number => Math.floor(now.getTime() / day_ms) * day_ms;

const archive = route({
  ...public_page,
  id: 'insightsPage',
  path: '/insights',
  query: Type.Object({ before: Type.Optional(Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\d$' })) }),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const today = todayOf(deps.clock());
    const given = Date.parse(ctx.query.before ?? '');
    const newest = Number.isNaN(given) ? today : Math.min(today, given - day_ms);
    const [first, ...latest] = await Promise.all([
      readFirstDay(api, today),
      ...(ctx.query.before === undefined ? [today, today - day_ms] : []).map((ms) =>
        api.get('getDailyInsights', { query: { date: dateOf(ms) } }),
      ),
    ]);
    const days = Array.from({ length: listed_days }, (_, n) => newest - n * day_ms).filter(
      (ms) => ms >= first,
    );
    const oldest = days.at(-1);
    return renderPage(deps, {
      title: 'Insights by day',
      description:
        'Daily summaries: the biggest moves, resolved questions and the score of the crowd.',
      path: '/insights',
      section: 'insights',
      children: (
        <>
          <h1>Insights by day</h1>
          <div class="grid two">
            {latest.map((day) => (
              <section key={day.date} class="card">
                <h2>
                  <a href={`/insights/${day.date}`}>{day.partial ? 'Today' : 'Yesterday'}</a>
                </h2>
                <p>{headlineOf(day)}.</p>
              </section>
            ))}
          </div>
          <ul class="days">
            {days.map((ms) => (
              <li key={ms}>
                <a href={`/insights/${dateOf(ms)}`}>{dayText(new Date(ms))}</a>
              </li>
            ))}
          </ul>
          {days.length === 0 && <p class="soft">There are no earlier days.</p>}
          {oldest !== undefined && oldest > first && (
            <nav class="pager" aria-label="Pages">
              <a class="button" href={`/insights?before=${dateOf(oldest)}`} rel="next">
                Earlier days
              </a>
            </nav>
          )}
        </>
      ),
    });
  },
});

const oneDay = route({
  ...public_page,
  id: 'insightsDayPage',
  path: '/insights/{date}',
  params: Type.Object({ date: Type.String({ maxLength: 40 }) }),
  absent: common_faults.NOT_FOUND,
  async handle(ctx, deps) {
    const { date } = ctx.params;
    const api = apiOf(ctx, deps);
    const [answer, first] = await Promise.all([
      api('getDailyInsights', { query: { date } }),
      readFirstDay(api, todayOf(deps.clock())),
    ]);
    if (!answer.ok && answer.fault.code === 'INVALID_DATE') return refuse(common_faults.NOT_FOUND);
    const day = answer.ok ? answer.body : await api.get('getDailyInsights', { query: { date } });
    return renderPage(deps, {
      title: `Insights for ${dayText(new Date(day.from))}`,
      description: `${headlineOf(day)}.`,
      path: `/insights/${day.date}`,
      card: `/cards/insights/${day.date}`,
      section: 'insights',
      children: <DayBody day={day} first={first} />,
    });
  },
});

export const insights_pages = [archive, oneDay];
