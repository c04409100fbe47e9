import { createHash } from 'node:crypto';
import {
  base_rates,
  cast,
  closings,
  comments,
  type DemoAgent,
  objections,
  reasons,
  replies,
  resolution_notes,
  value_rates,
} from './agents.js';
import type { DemoQuestion } from './question.js';
import { questions } from './questions.js';

/**
 * Makes everything that the demo sends: 60 days of history to import, and the forecasts and comments
 * of today. The same day and agents give the same texts and numbers.
 */

export const source = 'demo';

const day_ms = 86_400_000;
const hour_ms = 3_600_000;

/** Returns a source of numbers from 0 to 1 that depends only on the words. */
const seed = (...words: readonly (string | number)[]) => {
  let state = createHash('sha256').update(words.join('/')).digest().readUInt32LE();
  // Mulberry32: small, fast, and good enough for a demo.
  return (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};
type Random = ReturnType<typeof seed>;

/** A normally distributed number (Box–Muller). */
const normal = (random: Random): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

const pick = <T>(list: readonly T[], random: Random): T =>
  list[Math.floor(random() * list.length)] as T;

const between = (low: number, value: number, high: number): number =>
  Math.min(high, Math.max(low, value));

const mix = ([from, to]: readonly [number, number], share: number): number =>
  from + (to - from) * share;

const logit = (percent: number): number => Math.log(percent / (100 - percent));
const toPercent = (log_odds: number): number => 100 / (1 + Math.exp(-log_odds));

/** The news of a question: common to all agents, so that the crowd moves together. */
const newsAt = ({ id }: DemoQuestion, share: number): number => {
  const random = seed('news', id);
  const [slow, fast] = [random(), random()];
  return (
    0.4 * Math.sin(2 * Math.PI * (1.3 * share + slow)) +
    0.25 * Math.sin(2 * Math.PI * (3.7 * share + fast))
  );
};

/** The part of a question's time that has passed on a day, as a fraction. */
const shareOn = ({ days: [opens, closes] }: DemoQuestion, day: number): number =>
  (day - opens) / (closes - opens);

interface Opinion {
  /** The fields of the forecast, as the API takes them. */
  readonly stated: Readonly<Record<string, unknown>>;
  /** True if the facts called `up` support it. */
  readonly is_up: boolean;
  /** The chance of the answer, in percent; 50 for numbers and dates. */
  readonly percent: number;
  /** The chance of the same answer on the question's first day. */
  readonly prior: number;
  readonly answer: string;
  readonly band?: { readonly low: string; readonly median: string; readonly high: string };
  readonly from?: string;
}

export interface Moment {
  readonly now: Date;
  /** Counted from `now`, with a fraction; negative in the past. */
  readonly day: number;
}

export const dayOf = (now: Date, day: number): Date => new Date(now.getTime() + day * day_ms);

const dateText = (at: Date): string =>
  at.toLocaleDateString('en-GB', {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    timeZone: 'UTC',
  });

/** Makes an agent's forecast at a moment. Its error on a question stays mostly the same. */
const opinionOf = (agent: DemoAgent, question: DemoQuestion, { now, day }: Moment): Opinion => {
  const { boldness, noise, ahead } = agent;
  const own = seed('error', agent.name, question.id);
  const fresh = seed('fresh', agent.name, question.id, day.toFixed(2));
  const share = between(0, shareOn(question, day) + ahead, 1);
  const news = newsAt(question, share);
  const error = (): number => noise * (normal(own) + 0.3 * normal(fresh));
  if (question.type === 'binary') {
    const believed = mix([logit(question.path[0]), logit(question.path[1])], share);
    const chance = between(1, Math.round(toPercent(boldness * (believed + news + error()))), 99);
    const is_up = chance >= 50;
    const percent = is_up ? chance : 100 - chance;
    return {
      stated: { probability: chance, scale: 'percent' },
      is_up,
      percent,
      prior: is_up ? question.path[0] : 100 - question.path[0],
      answer: `${is_up ? 'YES' : 'NO'} at ${percent} %`,
    };
  }
  if (question.type === 'multi') {
    const [first, last] = question.path;
    const weights = question.options.map((_, n) => {
      const believed = mix([Math.log(first[n]!), Math.log(last[n]!)], share);
      return Math.exp(boldness * (believed + (n === 0 ? news : 0) + 0.6 * error()));
    });
    const all = weights.reduce((sum, one) => sum + one, 0);
    const chances = weights.map((one) => between(1, Math.round((100 * one) / all), 99));
    const best = chances.indexOf(Math.max(...chances));
    chances[best]! += 100 - chances.reduce((sum, one) => sum + one, 0);
    return {
      stated: {
        probabilities: Object.fromEntries(question.options.map((one, n) => [one, chances[n]])),
        scale: 'percent',
      },
      is_up: best === 0,
      percent: chances[best]!,
      prior: first[best]!,
      answer: `“${question.options[best]}” at ${chances[best]} %`,
    };
  }
  const { min, max } = question.range;
  const [first, last] = question.path;
  const width = Math.max(0.6 * Math.abs(last - first), 0.05 * (max - min));
  const middle = mix(question.path, share) + width * (0.9 * news + 0.6 * error());
  const spread = (width * (1 - 0.55 * share)) / boldness;
  const at = (deviations: number): number => middle + spread * deviations;
  const is_date = question.type === 'date';
  const show = (value: number): string =>
    is_date ? dateText(dayOf(now, value)) : `${grouped(value, max)} ${question.range.unit}`;
  // Points outside the range or in a wrong order would be refused.
  const points = deviations
    .map(([p, z]) => ({ p, value: between(min, is_date ? Math.round(at(z)) : at(z), max) }))
    .filter(({ value }, n, all) => value > min && value < max && value > (all[n - 1]?.value ?? min))
    .map(({ p, value }) => ({
      p,
      value: is_date ? dayOf(now, value).toISOString() : round(value, max),
    }));
  const [low, median, high] = [at(-1.28), at(0), at(1.28)].map((one) =>
    show(between(min, one, max)),
  ) as [string, string, string];
  return {
    stated: { quantiles: points, scale: 'percent' },
    is_up: middle >= (first + last) / 2,
    percent: 50,
    prior: 50,
    answer: `Median ${median}, 80 % from ${low} to ${high}`,
    band: { low, median, high },
    from: show(first),
  };
};

/** Percentages of a normal distribution, with their distance from the mean. */
const deviations = [
  [2, -2.05],
  [10, -1.28],
  [25, -0.67],
  [50, 0],
  [75, 0.67],
  [90, 1.28],
  [98, 2.05],
] as const;

const digitsFor = (max: number): number => (max > 1_000 ? 0 : max > 15 ? 1 : 2);
const round = (value: number, max: number): number => Number(value.toFixed(digitsFor(max)));
const grouped = (value: number, max: number): string =>
  round(value, max).toLocaleString('en', { maximumFractionDigits: digitsFor(max) });

type Gaps = Readonly<Record<string, string | number>>;

const fill = (sentence: string, gaps: Gaps): string =>
  sentence.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = gaps[name];
    if (value === undefined) throw new Error(`There is no {${name}} for "${sentence}".`);
    return String(value);
  });

const publishers = ['statistics', 'registers', 'newsdesk', 'filings', 'fieldnotes', 'archive'];

/** Numbers for the gaps of a sentence that fit each other and the forecast. */
const countCases = ({ percent, prior }: Opinion, random: Random) => {
  const n = 9 + Math.floor(random() * 38);
  const k = between(2, Math.round((n * prior) / 100 + 2 * (random() - 0.5)), n - 1);
  const start = Math.round((100 * k) / n);
  return { n, k, prior: start, shift: Math.max(1, Math.abs(percent - start)) };
};

const daysLeft = ({ days: [, closes] }: DemoQuestion, day: number): number =>
  Math.max(2, Math.round(closes - day));

/** Writes the reasoning for a forecast: two facts for it, one against it, and the numbers. */
const reasoningOf = (
  agent: DemoAgent,
  question: DemoQuestion,
  opinion: Opinion,
  day: number,
): string => {
  const random = seed('text', agent.name, question.id);
  const [pro, con] = opinion.is_up ? [question.up, question.down] : [question.down, question.up];
  const number = cast.indexOf(agent);
  // Agents with the same facts have different sentences around them, so that no texts are alike.
  const turn = number + Math.floor(12 * seed('turn', question.id)());
  const half = Math.floor(number / 12);
  const [one, two] = pro.filter((_, n) => n !== turn % 3) as [string, string];
  const cite = (fact: string, n: number): string => {
    const publisher = publishers[(number + 3 * n) % publishers.length];
    const page = `https://${publisher}.forum-demo.net/${question.id}/report-${200 + 2 * number + n}`;
    return `${fact.replace(/\.$/, '')} (${page}).`;
  };
  const cited = random() < 0.5 ? [cite(one, 0), cite(two, 1)] : [cite(two, 0), cite(one, 1)];
  const gaps = {
    ...countCases(opinion, random),
    ...opinion.band,
    from: opinion.from ?? '',
    answer: opinion.answer,
    cases: question.cases,
    days: daysLeft(question, day),
    fact: con[Math.floor(turn / 3) % 3]!,
    points: 3 + Math.floor(random() * 12),
    one_in: 3 + Math.floor(random() * 7),
  };
  const first = Math.floor(3 * random());
  const [way, other] = [agent.ways[first]!, agent.ways[(first + 1) % 3]!];
  const rates = opinion.band === undefined ? base_rates : value_rates;
  const rate = fill(rates[turn % rates.length]!, gaps);
  const evidence = number % 3 === 1 ? cited.map((each, n) => `(${n + 1}) ${each}`) : cited;
  const analysis =
    number % 2 === 0
      ? `${way} ${capitalise(rate)} ${other}`
      : `${capitalise(rate)} ${way} ${other}`;
  return [
    `EVIDENCE: ${evidence.join(' ')}`,
    `ANALYSIS: ${analysis}`,
    `COUNTER-EVIDENCE: ${fill(objections[(turn + 5 * half) % objections.length]!, gaps)}`,
    `BOTTOM LINE: ${fill(closings[(5 * turn + 3 * half) % closings.length]!, gaps)}`,
  ].join('\n\n');
};

const capitalise = (sentence: string): string => sentence[0]!.toUpperCase() + sentence.slice(1);

/**
 * Returns an agent's forecast with its reasoning. The page shows the newest forecast beside the
 * reasoning, so the text of a forecast that is revised later says that it is the first one.
 */
export const speak = (
  agent: DemoAgent,
  question: DemoQuestion,
  moment: Moment,
  is_revised = false,
) => {
  const opinion = opinionOf(agent, question, moment);
  const answer = is_revised ? `${opinion.answer} to begin with` : opinion.answer;
  const reasoning = reasoningOf(agent, question, { ...opinion, answer }, moment.day);
  return { ...opinion.stated, reasoning };
};

/** Returns a revised forecast with the reason for it. */
export const revise = (agent: DemoAgent, question: DemoQuestion, { now, day }: Moment) => {
  const random = seed('revision', agent.name, question.id);
  // As if a few more days had passed.
  const opinion = opinionOf(agent, question, { now, day: day + 4 + 4 * random() });
  const gaps = commentGaps(question, random);
  return { ...opinion.stated, reason: fill(pick(reasons, random), gaps) };
};

/** Returns the options or the range of a question. */
const shapeOf = (question: DemoQuestion, now: Date) => {
  if (question.type === 'multi') return { options: question.options };
  if (question.type === 'numeric') return { range: question.range };
  if (question.type === 'binary') return {};
  const [min, max] = [question.range.min, question.range.max].map((day) =>
    dayOf(now, day).toISOString(),
  ) as [string, string];
  return { range: { min, max } };
};

/** Returns the draft of a question, as an import takes it. */
const draftOf = (question: DemoQuestion, now: Date) => {
  const [opens_at, closes_at] = question.days.map((day) => dayOf(now, day)) as [Date, Date];
  const { type, subcategory, tags, ask, rule } = question;
  return {
    source,
    source_id: question.id,
    publish: true,
    question: ask.replace('{date}', dateText(closes_at)),
    description: `${rule}\n\nA question of the demo. The question and all of its sources are invented.`,
    subcategory,
    tags,
    question_type: type,
    ...shapeOf(question, now),
    opens_at: opens_at.toISOString(),
    closes_at: closes_at.toISOString(),
  };
};

const resolutionOf = (question: DemoQuestion, now: Date) => {
  const { id: source_id, outcome } = question;
  const resolution_note = pick(resolution_notes, seed('note', source_id));
  const common = { source, source_id, resolution_note };
  if (question.type === 'multi') return { ...common, correct_options: [outcome] };
  if (question.type !== 'date') {
    return {
      ...common,
      ...(question.type === 'binary' ? { outcome } : { outcome_value: outcome }),
    };
  }
  const known_at = dayOf(now, question.outcome!).toISOString();
  return { ...common, outcome_value: known_at, known_at };
};

/** Days on which an agent forecasts on a question, in order; none if it skips the question. */
const forecastDays = (agent: DemoAgent, question: DemoQuestion): readonly number[] => {
  const random = seed('days', agent.name, question.id);
  if (random() > 0.78) return [];
  const [opens, closes] = question.days;
  // Nothing is in the future or at the very end.
  const last = Math.min(closes, 0) - 0.02;
  const first = opens + 0.05 + (last - opens) * 0.8 * random() ** 1.7;
  const count = Math.floor(random() * 3.2);
  const later = Array.from({ length: count }, () => mix([first, last], 0.1 + 0.9 * random()));
  return [first, ...later].sort((a, b) => a - b);
};

/** Makes the questions, forecasts and outcomes to import. */
export const makeHistory = (agents: readonly DemoAgent[], now: Date) => {
  const forecasts = questions.flatMap((question) =>
    agents.flatMap((agent) =>
      forecastDays(agent, question).map((day, n, all) => {
        const is_revised = all.length > 1;
        const { reasoning, ...stated } = speak(agent, question, { now, day }, is_revised);
        const forecast_at = dayOf(now, day).toISOString();
        const named = { source, source_id: question.id, agent, forecast_at };
        return { ...named, ...stated, ...(n === 0 ? { reasoning } : {}) };
      }),
    ),
  );
  return {
    drafts: questions.map((question) => draftOf(question, now)),
    // In order of time: a later forecast revises an earlier one.
    forecasts: forecasts.sort((a, b) => a.forecast_at.localeCompare(b.forecast_at)),
    resolutions: questions
      .filter(({ outcome }) => outcome !== undefined)
      .map((question) => resolutionOf(question, now)),
  };
};

/** The start of the current hour, so that closing times are plain. */
export const startOfHour = (now: Date): Date =>
  new Date(Math.floor(now.getTime() / hour_ms) * hour_ms);

/** Chooses facts that were not used in the thread so far. */
const commentGaps = (
  question: DemoQuestion,
  random: Random,
  used: readonly string[] = [],
): Gaps => {
  const sides = random() < 0.5 ? [question.up, question.down] : [question.down, question.up];
  const [fact, other] = sides.map((facts) => {
    const fresh = facts.filter((one) => !used.some((text) => text.includes(one)));
    return pick(fresh.length > 0 ? fresh : facts, random);
  }) as [string, string];
  const n = 6 + Math.floor(random() * 30);
  return {
    fact,
    other,
    cases: question.cases,
    rule: question.rule,
    n,
    k: 2 + Math.floor(random() * (n - 3)),
    points: 2 + Math.floor(random() * 9),
    days: daysLeft(question, 0),
  };
};

export interface Remark {
  /** Index of the agent who writes, among all agents. */
  readonly by: number;
  readonly content: string;
  /** Each answers the one before it. */
  readonly answers: readonly { readonly by: number; readonly content: string }[];
}

/** Sentences about the time left, or about a forecast to be made, do not fit a closed question. */
const isTimeless = (sentence: string): boolean => !/\{days\}|\{rule\}/.test(sentence);

/** Makes the discussion of a question among agents with these names. */
export const discuss = (
  question: DemoQuestion,
  names: readonly string[],
  count: number,
): readonly Remark[] => {
  const random = seed('discussion', question.id);
  const is_open = question.days[1] > 0;
  const [openings, answers] = [comments, replies].map((all) =>
    is_open ? all : all.filter(isTimeless),
  ) as [readonly string[], readonly string[]];
  const offset = Math.floor(random() * openings.length);
  let replied = Math.floor(random() * answers.length);
  const someone = (not: number): number =>
    (not + 1 + Math.floor(random() * (names.length - 1))) % names.length;
  const used: string[] = [];
  const write = (sentence: string, name = ''): string => {
    const content = fill(sentence, { ...commentGaps(question, random, used), name });
    used.push(content);
    return content;
  };
  return Array.from({ length: count }, (_, n) => {
    used.length = 0;
    const by = someone(0);
    const content = write(openings[(offset + n) % openings.length]!);
    const thread: { by: number; content: string }[] = [];
    for (let left = Math.floor(random() * 4); left > 0; left -= 1) {
      const before = thread.at(-1)?.by ?? by;
      const sentence = answers[replied % answers.length]!;
      thread.push({ by: someone(before), content: write(sentence, names[before]) });
      replied += 1;
    }
    return { by, content, answers: thread };
  });
};
