import { openSql, type Sql } from '../src/db/client.js';
import { search } from '../src/features/search/finding.js';
import { questionId } from './env/seed.js';
import { startForum } from './env/setup.js';
import { type Bench, figureOf, type Subject } from './frame/bench.js';
import { latenciesOf } from './load/load.js';
import { makeRandom } from './load/predict-texts.js';

/**
 * Measures how long Postgres takes for a search among 100,000 questions in six languages and 10,000
 * agents, from the api process to the last row. The words are in memory before. The peer searches the questions alone, with
 * `websearch_to_tsquery('english')` and an index. It finds no beginnings of words and corrects
 * nothing.
 */

const sizes = { questions: 100_000, agents: 10_000 };
const searches_a_round = 200;

/** Returns a random whole number from 0 to below `below`. */
type Random = (below: number) => number;

const syllables = 'ka lo mi ne ru sa te vo wi xa zu bri cho dra fle gro pan del sor tim'.split(' ');
/** Made-up words of two to four syllables. The first ones are the most common. */
const makeWords = (random: Random): readonly string[] =>
  Array.from({ length: 20_000 }, (_, n) => {
    const count = 2 + (n % 3);
    return Array.from({ length: count }, () => syllables[random(syllables.length)]).join('');
  });

const companies = [
  'OpenAI',
  'Anthropic',
  'Nvidia',
  'Waymo',
  'GPT-5',
  'GPT-5.5',
  'Claude',
  'fusion',
];
const cjk = (random: Random, length: number): string =>
  String.fromCodePoint(...Array.from({ length }, () => 0x4e00 + random(2_500)));

interface Made {
  readonly question: string;
  readonly description: string;
}

const makeQuestion = (random: Random, words: readonly string[], n: number): Made => {
  /** Like a natural language: few words are common, most are rare. */
  const some = (count: number): string =>
    Array.from({ length: count }, () => {
      const share = random(1_000_000) / 1_000_000;
      return words[Math.floor(words.length * share ** 3)];
    }).join(' ');
  const year = 2026 + random(5);
  const forms = [
    `東京の${cjk(random, 3)}は${year}年までに${cjk(random, 2)}を発表しますか、それとも延期しますか`,
    `北京将在${year}年之前发布${cjk(random, 4)}人工智能吗,还是推迟`,
    `ประเทศไทยจะขึ้นอัตราดอกเบี้ย ${some(1)} ก่อนปี ${year} หรือไม่`,
    `Выпустит ли ${some(2)} новую модель до конца ${year} года?`,
    `Wird ${some(3)} vor dem Jahr ${year} die Überprüfung in München verlassen?`,
  ];
  const company = companies[random(companies.length * 4)] ?? some(1);
  return {
    question: forms[n % 20] ?? `Will the ${company} ${some(4)} by ${year}?`,
    description: `This resolves to yes if ${some(60)} according to the first official report.`,
  };
};

const a_statement = 2_000;

const addQuestions = async (sql: Sql, made: readonly Made[]): Promise<void> => {
  for (let from = 0; from < made.length; from += a_statement) {
    const rows = made
      .slice(from, from + a_statement)
      .map((one, n) => ({ id: questionId(1 + from + n), ...one }));
    await sql`
      insert into questions (
        id, question, description, category, subcategory, question_type, status, timeframe,
        opens_at, closes_at, resolution_date, published_at
      )
      select
        id, question, description, 'technology', 'data', 'binary', 'open', 'long', now(),
        now() + interval '60 days', now() + interval '61 days', now()
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as d (
        id uuid, question text, description text
      )`;
  }
  await sql`create index on questions using gin (search)`;
};

/** Reads the tables and indexes into memory, as they are on a forum that is in use. */
const loadTables = async (url: string): Promise<void> => {
  const sql = openSql({
    url,
    pool: 1,
    prepare: false,
    name: 'bench',
    statement_timeout_ms: 120_000,
  });
  await sql`create extension pg_prewarm`;
  await sql`
    select pg_prewarm(oid)
    from pg_class
    where relname ~ '(_words|known_words)' and relkind in ('r', 'i')`;
  await sql.end({ timeout: 5 });
};

/** Searches of each kind, made from the question that is meant. */
const kinds: Readonly<Record<string, (words: readonly string[], random: Random) => string>> = {
  exact: (words, random) => `${words[3 + random(3)]} ${words[4]}`,
  prefix: (words) => `${words[3]} ${words[5]?.slice(0, 3)}`,
  typo: (words) => `${words[4]?.slice(0, 2)}${words[4]?.slice(3)}`,
  cjk: (_words, random) =>
    ['東京', '延期', '人工智能', '発表しますか', 'ดอกเบี้ย', cjk(random, 1), cjk(random, 2)][
      random(7)
    ]!,
  common: (_words, random) =>
    ['the will', 'will', 'w', 'by 2027', 'resolves yes', 'новую модель', 'gpt 5.5', 'openai'][
      random(8)
    ]!,
  nothing: (words) => `qqq${words[4]} jjjj`,
};

export const bench: Bench = {
  question: 'How long does Postgres take for a search among 100,000 questions?',
  figures: Object.fromEntries(
    Object.keys(kinds).flatMap((kind) => [
      [`${kind}_p50_ms`, { of: figureOf(kind, 'p50_ms') }],
      [`${kind}_p99_ms`, { of: figureOf(kind, 'p99_ms'), max: 50 }],
      [`${kind}_peer_p99_ms`, { of: figureOf(`${kind}_peer`, 'p99_ms') }],
    ]),
  ),
  async prepare(context) {
    const share = makeRandom(47);
    const random: Random = (below) => Math.floor(share() * below);
    const words = makeWords(random);
    const count = context.quick ? sizes.questions / 10 : sizes.questions;
    const made = Array.from({ length: count }, (_, n) => makeQuestion(random, words, n));
    const { setup } = await startForum(context, {
      agents: context.quick ? sizes.agents / 10 : sizes.agents,
      questions: 1,
      fill: (sql) => addQuestions(sql, made),
    });
    const sql = setup.open('service');
    await loadTables(setup.urlOf('service').replace('forum@', 'postgres@'));
    const deps = { reads: sql, guide_sections: () => [] };
    const run = (name: string, read: (q: string) => Promise<unknown>): Subject => {
      const kind = kinds[name.replace('_peer', '')]!;
      const ask = async (): Promise<number> => {
        const title = made[20 * random(made.length / 20) + 5 + random(15)]!.question.split(' ');
        const q = kind(title, random);
        const started_ms = performance.now();
        await read(q);
        return performance.now() - started_ms;
      };
      const round = async () => {
        const taken_ms: number[] = [];
        for (let n = 0; n < searches_a_round; n += 1) taken_ms.push(await ask());
        return latenciesOf(taken_ms);
      };
      return { name, warmUp: round, round };
    };
    const peer = (q: string) => sql`
      select q.id, q.question, ts_rank(q.search, websearch_to_tsquery('english', ${q})) as rank
      from questions q
      where q.search @@ websearch_to_tsquery('english', ${q}) and q.status <> 'draft'
      order by rank desc, q.id desc
      limit 6`;
    return Object.keys(kinds).map((kind) => () => [
      run(kind, (q) => search(deps, q, 5)),
      run(`${kind}_peer`, peer),
    ]);
  },
};
