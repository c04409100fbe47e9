import { putSnapshot } from '../../src/features/consensus/store.js';
import type { TestApp } from '../help/app.js';
import { admin_email } from '../help/principals.js';
import { untilSettled } from '../help/settling.js';
import { type Agent, type Human, makeAgent, makeHuman, makeReasoning } from '../help/story.js';
import { until } from '../help/until.js';
import { cast, scripts, speak } from './season-texts.js';

/**
 * A forum as visitors find it after some weeks: questions of every type and status with forecasts
 * of many families over time, comments, ranks, and tasks for a person and an admin.
 */

export const env: Readonly<Record<string, string>> = {
  ADMIN_EMAILS: admin_email,
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
};

const day_ms = 86_400_000;
const source = 'season';
/** Agents of the season. The other agents belong to the person. */
const imported = cast.slice(0, 14);
const own = cast.slice(14, 20);

const daysFromNow = (days: number): string => new Date(Date.now() + days * day_ms).toISOString();

/** The answer of a call that must succeed. */
const must = async (
  app: TestApp,
  method: string,
  path: string,
  options: Parameters<TestApp['call']>[2],
) => {
  const answer = await app.call(method, path, options);
  const refused = answer.body?.results?.find((one: { status: string }) => one.status === 'refused');
  if (answer.status < 300 && refused === undefined) return answer.body;
  throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(refused ?? answer.body)}`);
};

const importAll = async (
  app: TestApp,
  what: string,
  items: readonly object[],
  // biome-ignore lint/suspicious/noExplicitAny: results of the parts differ.
): Promise<readonly any[]> => {
  const results: object[] = [];
  for (let at = 0; at < items.length; at += 100) {
    const body = { items: items.slice(at, at + 100) };
    const answer = await must(app, 'POST', `/api/admin/${what}/import`, { admin: true, body });
    results.push(...answer.results);
  }
  return results;
};

const drafts = scripts.map(
  ({ question, description, category, subcategory, tags, options }, n) => ({
    source,
    source_id: `open-${n}`,
    publish: true,
    category,
    subcategory,
    tags,
    question: question.replace('{date}', daysFromNow(20 + 9 * n).slice(0, 10)),
    description: `${description}\n\nNews reports alone do not settle it; the stated source does.`,
    ...(options === undefined ? {} : { question_type: 'multi', options }),
    opens_at: daysFromNow(-21),
    closes_at: daysFromNow(20 + 9 * n),
    resolution_source: 'The operator’s own publication',
    resolution_url: 'https://example.org/',
  }),
);

const decided = [
  'Will the harbour’s second crane be in service before the end of the month?',
  'Will the open licence of the regional weather data be renewed this month?',
  'Will the new night train run at least twenty times within its first month?',
  'Will the city library lend more electronic books than printed ones this month?',
  'Will the ferry to the northern islands keep its timetable on nine days of ten?',
  'Will the public test of the flood warning reach half of all telephones?',
  'Will the price of grid balancing stay below its average of the last five years?',
  'Will the university’s open courses count more than ten thousand learners?',
  'Will the review of the building code be published before the council meets?',
  'Will the second reactor be back on the grid by the date that its owner named?',
  'Will the appeal about the data centre be heard before the summer recess?',
].map((question, n) => ({
  source,
  source_id: `decided-${n}`,
  publish: true,
  question,
  category: 'society',
  subcategory: 'benefits_public_good',
  tags: ['#OpenScience'],
  opens_at: daysFromNow(-28),
  closes_at: daysFromNow(1),
}));

const other_types = [
  {
    question: 'How many charging points will the region count at the end of the quarter?',
    question_type: 'numeric',
    range: { min: 0, max: 5_000, unit: 'points' },
  },
  {
    question: 'On which day will the new bridge be opened to traffic?',
    question_type: 'date',
    range: { min: daysFromNow(5), max: daysFromNow(300) },
  },
].map((one) => ({
  ...one,
  category: 'industry',
  subcategory: 'energy_utilities',
  publish: true,
  closes_at: daysFromNow(90),
}));

/** Number of the script with opinions on a question. Decided questions use yes/no scripts. */
const scriptOf = (question: number): number =>
  question < scripts.length ? question : question % (scripts.length - 1);

type Numbered = Readonly<{ question_type: string }>;
const quantilesOf = ({ question_type }: Numbered, n: number) =>
  [10, 50, 90].map((p, at) => ({
    p,
    value:
      question_type === 'numeric' ? 900 + 300 * at + 70 * n : daysFromNow(40 + 60 * at + 5 * n),
  }));

/** The season: forecasts over three weeks, and revisions of some of them. */
const importSeason = async (app: TestApp): Promise<readonly string[]> => {
  await importAll(app, 'agents', imported);
  const questions = await importAll(app, 'questions', [...drafts, ...decided]);
  const forecasts = imported.flatMap(({ name }, agent) =>
    [...drafts, ...decided].flatMap(({ source_id }, question) => {
      const speech = speak({ agent, question: scriptOf(question), run_id: source_id });
      const days = -20 + ((agent * 5 + question * 3) % 18);
      const first = { source, source_id, agent: name, ...speech, forecast_at: daysFromNow(days) };
      if (speech.prediction === undefined || agent % 3 !== 0) return [first];
      const confidence = Math.min(97, speech.confidence + 12);
      return [first, { ...first, confidence, forecast_at: daysFromNow(days + 2.5) }];
    }),
  );
  forecasts.sort((a, b) => (a.forecast_at < b.forecast_at ? -1 : 1));
  await importAll(app, 'predictions', forecasts);
  return questions.map(({ question_id }) => question_id);
};

const decideSeason = async (app: TestApp, ids: readonly string[]): Promise<void> => {
  const resolution_note = 'As the harbour board published it.';
  const outcomes = decided
    .slice(1)
    .map(({ source_id }, n) => ({ source, source_id, resolution_note, outcome: n % 2 === 0 }));
  const voided = { source, source_id: decided[0]!.source_id, void: true, resolution_note };
  await importAll(app, 'resolutions', [...outcomes, voided]);
  for (const id of ids.slice(drafts.length)) await untilSettled(app.sql, id);
};

const texts = [
  'The tender that closed last week names a date which this forecast does not consider at all.',
  'Two of the sources cited here go back to the same press release, so they count as one.',
  'Agreed on the base rate, but the permit was granted already, and that changes the picture.',
];

/** Adds past snapshots, in which the crowd moves towards its current forecast. */
const addPast = async (app: TestApp, id: string): Promise<void> => {
  const { body } = await app.call('GET', `/api/questions/${id}/consensus`);
  const { forecast, options } = body.consensus ?? body;
  if (typeof forecast !== 'number') return;
  const moved = (value: number, days: number): number => {
    const shift = days === 0 ? 0 : (days * 7 + Math.round(value)) % 9;
    return Math.max(1, Math.min(99, value - days * 0.8 - shift));
  };
  for (let days = 20; days > 0.5; days -= 0.75) {
    const at = new Date(Math.floor((Date.now() - days * day_ms) / 3_600_000) * 3_600_000);
    const consensus = {
      ...(body.consensus ?? body),
      forecast: moved(forecast, days),
      ...(options == null
        ? {}
        : {
            options: options.map((one: { mean_probability: number }) => ({
              ...one,
              mean_probability: moved(one.mean_probability, days),
            })),
          }),
    };
    const snapshot = { reason: 'hourly', moment: at, taken_at: at } as const;
    await putSnapshot(app.sql as never, snapshot, consensus);
  }
};

/** Adds content to a person's account pages, and items for an admin to decide. */
const addWork = async (
  app: TestApp,
  { token }: Human,
  { agents, question, resolved }: Pick<World, 'agents' | 'question' | 'resolved'>,
): Promise<{ readonly delivery: string }> => {
  const [first, second] = agents;
  const suggestion = {
    question: 'Will the old tram depot be opened as a market hall before next summer?',
    description: 'Resolves YES when the public may enter and buy something there.',
    category: 'society',
    subcategory: 'benefits_public_good',
    tags: ['#OpenScience'],
    resolution_date: daysFromNow(200),
  };
  await must(app, 'POST', '/api/questions/suggest', { key: second?.key ?? '', body: suggestion });
  await must(app, 'POST', `/api/questions/${resolved}/dispute`, {
    key: first?.key ?? '',
    body: {
      reason:
        'The board published a correction two days later, by which the count was below the line that the question names.',
      evidence_urls: ['https://example.org/correction'],
    },
  });
  const { predictions } = (await app.call('GET', `/api/questions/${question}/predictions`)).body;
  const own_ids = agents.map(({ id }) => id);
  const [voted, other] = predictions.filter(
    ({ user_id }: { user_id: string }) => !own_ids.includes(user_id),
  );
  const why = { admin: true, body: { reason: 'It repeats an advertisement.' } };
  await must(app, 'POST', `/api/admin/predictions/${other.id}/hide`, why);
  await must(app, 'POST', `/api/predictions/${voted.id}/upvote`, { key: second?.key ?? '' });
  const note = 'The second source is about another harbour.';
  for (const [path, body] of [
    [`predictions/${voted.id}`, { reason: 'false_evidence', note }],
    [`agents/${voted.user_id}`, { reason: 'copied' }],
    [`questions/${question}`, { reason: 'other', note: 'Nobody can know the outcome.' }],
  ] as const) {
    await must(app, 'POST', `/api/${path}/report`, { token, body });
  }
  return {
    delivery: await until('a delivery', async () => {
      const { body } = await app.call('GET', '/api/webhooks', { token });
      const path = `/api/webhooks/${body[0].id}/deliveries`;
      const { deliveries } = (await app.call('GET', path, { token })).body;
      return deliveries.find(({ attempts }: { attempts: number }) => attempts > 0)?.id;
    }),
  };
};

export interface World {
  readonly operator: Human;
  readonly person: Human;
  readonly agents: readonly Agent[];
  /** An open yes/no question. */
  readonly question: string;
  readonly multi: string;
  readonly numeric: string;
  readonly date: string;
  readonly resolved: string;
  readonly voided: string;
  readonly agent: string;
  readonly webhook: string;
  readonly delivery: string;
  readonly prediction: string;
  readonly settled_prediction: string;
}

export const makeWorld = async (app: TestApp): Promise<World> => {
  const [operator, person] = [await makeHuman(app, admin_email), await makeHuman(app)];
  const hook = await must(app, 'POST', '/api/webhooks', {
    token: person.token,
    // Nothing listens there.
    body: { url: 'https://127.0.0.1:10009/events', events: ['question.resolved'] },
  });
  const season = await importSeason(app);
  const agents: Agent[] = [];
  for (const { name, model } of own)
    agents.push(await makeAgent(app, { human: person, name, model }));
  // Marks these agents as agents that sign their requests.
  await app.sql`
    insert into agent_operators (agent_id, origin, keyid, verified_at, checked_at)
    select unnest(${agents.slice(0, 3).map(({ id }) => id)}::uuid[]), 'https://agents.example', 'k',
      now(), now()`;
  const numbers: string[] = [];
  for (const body of other_types) {
    const made = await must(app, 'POST', '/api/admin/questions', { admin: true, body });
    numbers.push(made.question.id);
  }
  const placed = new Map<string, string[]>();
  const predict = async (agent: Agent, question_id: string, body: object): Promise<void> => {
    const path = `/api/questions/${question_id}/predict`;
    const { prediction } = await must(app, 'POST', path, { key: agent.key, body });
    placed.set(question_id, [...(placed.get(question_id) ?? []), prediction.id]);
  };
  for (const [n, agent] of agents.entries()) {
    for (const [question, id] of season.entries()) {
      const speaker = { agent: imported.length + n, question: scriptOf(question) };
      await predict(agent, id, speak({ ...speaker, run_id: `own-${question}` }));
    }
    for (const [at, id] of numbers.entries()) {
      const quantiles = quantilesOf(other_types[at]!, n);
      await predict(agent, id, { quantiles, reasoning: makeReasoning() });
    }
  }
  await decideSeason(app, season);
  for (const id of season.slice(0, drafts.length)) await addPast(app, id);
  await until('ranks', async () => {
    const { body } = await app.call('GET', '/api/leaderboard?by=brier');
    return body.leaderboard.some(({ rank }: { rank: number | null }) => rank !== null);
  });
  const [question = '', ...rest] = season;
  const comments: string[] = [];
  for (const [n, content] of texts.entries()) {
    const { key } = agents[n]!;
    const path =
      n === 2 ? `/api/comments/${comments[0]}/reply` : `/api/questions/${question}/comments`;
    const { comment } = await must(app, 'POST', path, { key, body: { content } });
    comments.push(comment.id);
  }
  const ofQuestion = (id: string): string => placed.get(id)?.[0] ?? '';
  const [voided = '', resolved = ''] = season.slice(drafts.length);
  const { delivery } = await addWork(app, person, { agents, question, resolved });
  return {
    operator,
    person,
    agents,
    question,
    resolved,
    voided,
    webhook: hook.id,
    delivery,
    multi: rest[4] ?? '',
    numeric: numbers[0] ?? '',
    date: numbers[1] ?? '',
    agent: agents[0]?.id ?? '',
    prediction: ofQuestion(question),
    settled_prediction: ofQuestion(resolved),
  };
};
