import type { Db } from '../../db/client.js';
import { searchQuery } from '../../db/words.js';
import { normaliseText } from '../../kit/text.js';
import type { ModelFamily } from '../taxonomy/model-family.js';
import type { FoundAgent, FoundQuestion } from './schema.js';

/** The SQL of the search. Each query has a limit, also on the rows that it ranks. */

/** Only the newest matching agents are ranked, because a common word matches most of them. */
const ranked = 300;

/** Matches outside of titles. With a smaller number, Postgres would look through all questions. */
const looked_at = 300;

interface QuestionRow extends Omit<FoundQuestion, 'closes_at'> {
  readonly closes_at: Date;
}

/** Returns published questions: matches in titles first, then others; each group newest first. */
export const findQuestions = (db: Db, text: string, limit: number) => db<QuestionRow[]>`
  with wanted as materialized (select ${searchQuery(db, text)} as query),
  in_title as materialized (
    select m.question_id
    from newest_matches((select query from wanted), ${limit}::integer, false, true) as m (question_id)
  ),
  elsewhere as materialized (
    select m.question_id
    from newest_matches((select query from wanted), ${db.unsafe(String(looked_at))}, false, false)
      as m (question_id)
    where (select count(*) from in_title) < ${limit}
  ),
  best as (
    select question_id, true as is_in_title from in_title
    union all
    select question_id, false from elsewhere where question_id not in (select * from in_title)
  )
  select
    q.id, q.question, q.status, q.category, q.closes_at,
    coalesce(c.prediction_count, 0) as prediction_count
  from best b
  join questions q on q.id = b.question_id
  left join question_counts c on c.question_id = b.question_id
  order by b.is_in_title desc, b.question_id desc
  limit ${limit}`;

/** Returns agents, the best match first, then those with the most resolved predictions. */
export const findAgents = (db: Db, text: string, limit: number) => db<FoundAgent[]>`
  with wanted as materialized (select ${searchQuery(db, text)} as query),
  newest as materialized (
    select w.agent_id
    from agent_words w
    where w.words @@ (select query from wanted)
    order by w.agent_id desc
    limit ${db.unsafe(String(ranked))}
  )
  select a.id, a.name, a.model, a.model_family
  from newest
  join agent_words w using (agent_id)
  join agents a on a.id = w.agent_id
  left join standings s on s.agent_id = w.agent_id
  order by
    ts_rank(w.words, (select query from wanted)) desc, coalesce(s.resolved, 0) desc, a.id desc
  limit ${limit}`;

/** Returns the families that have an agent. */
export const findFamilies = async (db: Db, families: readonly ModelFamily[]) => {
  const rows = await db<{ family: ModelFamily }[]>`
    select family
    from unnest(${families as ModelFamily[]}::text[]) as family
    where exists (
      select from agents a
      where a.model_family = family and a.owner_id is not null and a.suspended_at is null
    )`;
  return rows.map(({ family }) => family);
};

/** The folded words of a text, in order. A known word is itself or begins a known word. */
export interface Spelling {
  readonly word: string;
  readonly is_known: boolean;
  /** Known words that are similar, the most similar first. */
  readonly similar: readonly string[];
}

const most_similar = 40;

/**
 * Looks each word up. Words with digits or fewer than three letters count as known. Some locales
 * of databases know no letters beyond ASCII, and Postgres makes no trigrams of such letters. The
 * words with the same beginning are then similar.
 */
export const readSpellings = (db: Db, text: string) => db<Spelling[]>`
  select g.word, is_known, case when is_known then '{}' else similar_to.words end as similar
  from unnest(string_to_array(search_fold(${normaliseText(text)}), ' '))
    with ordinality as g (word, n)
  cross join lateral (
    select char_length(g.word) < 3 or g.word < 'a' collate "C" or exists (
      select from known_words k
      where k.word collate "C" >= g.word and k.word collate "C" < g.word || U&'\\+10FFFF'
    ) as is_known
  ) known
  cross join lateral (
    select array(
      select k.word
      from known_words k
      where not is_known and k.word % g.word
      order by similarity(k.word, g.word) desc, k.word
      limit ${db.unsafe(String(most_similar))}
    ) || array(
      select k.word
      from known_words k
      where not is_known
        and octet_length(g.word) > char_length(g.word)
        and k.word collate "C" >= left(g.word, 2)
        and k.word collate "C" < left(g.word, 2) || U&'\\+10FFFF'
      limit 1000
    ) as words
  ) similar_to
  order by g.n`;

/** Returns the words that are known. */
export const findKnown = async (db: Db, words: readonly string[]) => {
  const rows = await db<{ word: string }[]>`
    select distinct word from known_words where word collate "C" = any (${words as string[]}::text[])`;
  return rows.map(({ word }) => word);
};
