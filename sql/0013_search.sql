-- compat: running programs keep working; they search in questions.search until they are replaced.

-- Questions cannot be added or changed while this migration runs: half a minute for 100,000. Reads
-- and predictions go on.

-- Finds similar words. A user who may create objects in the database can install it.
create extension if not exists pg_trgm;

-- A text as separate words in the form in which they are compared. Both sides of a search use it,
-- and it does not depend on the locale of the database:
--   compatibility forms are resolved, and marks are removed: "ＧＰＴ" is "gpt", "é" is "e";
--   letters are small; signs and quotes become blanks;
--   letters and digits are apart: "GPT-5.5", "gpt 5.5" and "gpt5.5" are "gpt 5 5";
--   each character of a script without blanks, and of Korean, is a word.
create function search_fold(given text) returns text
language plpgsql immutable strict parallel safe as $$
declare
  folded text := given;
begin
  if octet_length(given) > char_length(given) then
    -- Marks that are characters of their own go first, because sorting thousands of them takes long.
    folded := regexp_replace(
      folded,
      '[\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7'
      '\u0610-\u061a\u0640\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e'
      '\u2060-\u206f\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\ufeff]+',
      '', 'g'
    );
    folded := regexp_replace(
      normalize(folded, NFKD),
      '[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670]+',
      '', 'g'
    );
    folded := translate(
      normalize(folded, NFC),
      'ØøŁłĐđÐðĦħŦŧıςΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ'
      'АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯЂЄЅІЈЉЊЋЏҐ',
      'oollddddhhttiσαβγδεζηθικλμνξοπρστυφχψω'
      'абвгдежзиклмнопрстуфхцчшщъыьэюяђєѕіјљњћџґ'
    );
    folded := replace(replace(replace(replace(
      lower(folded), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th');
    folded := regexp_replace(
      folded,
      '[\u0080-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7\u02b0-\u02ff\u037e\u0387'
      '\u055a-\u055f\u0589\u058a\u05be\u05c0\u05c3\u05f3\u05f4\u0600-\u060f\u061b-\u061f'
      '\u066a-\u066d\u06d4\u0964\u0965\u0970\u0e3f\u0e4f\u0e5a\u0e5b\u104a-\u104f\u1360-\u1368'
      '\u17d4-\u17db\u2000-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d-\u303f\u30fb'
      '\ua000-\ua003\ufd3e\ufd3f\ufe10-\ufe1f\ufe30-\ufe6f\uff00-\uff20\uff3b-\uff40\uff5b-\uff65'
      '\uffe0-\uffff\U0001f000-\U0001faff]+',
      ' ', 'g'
    );
    folded := regexp_replace(
      folded,
      '([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u30ff\u31f0-\u31ff'
      '\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff])',
      ' \1 ', 'g'
    );
  end if;
  folded := regexp_replace(lower(folded), '[\u0001-/:-`{-\u007f]+', ' ', 'g');
  if folded ~ '[0-9]' then
    folded := regexp_replace(folded, '([^0-9 ])([0-9])', '\1 \2', 'g');
    folded := regexp_replace(folded, '([0-9])([^0-9 ])', '\1 \2', 'g');
  end if;
  return btrim(folded);
end
$$;

-- Pairs of neighbours in a folded text: two characters of scripts without blanks, or a number and
-- the word beside it ("gpt5", "5x5"). An index finds "GPT-5.5" and "東京" by their pairs. Otherwise
-- Postgres would compare the positions of "gpt" and "5" in every text that contains both.
create function search_pairs(folded text) returns text
language plpgsql immutable strict parallel safe as $$
begin
  if folded !~ '[0-9]|[\u0e00-\U0010ffff]' then
    return '';
  end if;
  return coalesce(
    (
      select
        string_agg(case when a < ':' and b < ':' then a || 'x' || b else a || b end, ' ' order by n)
      from (
        select n, word as a, lead(word) over (order by n) as b
        from unnest(string_to_array(folded collate "C", ' ')) with ordinality as words (word, n)
      ) neighbours
      where a < ':' or b < ':'
        or (a >= U&'\0E00' and b >= U&'\0E00' and char_length(a) = 1 and char_length(b) = 1)
    ),
    ''
  );
end
$$;

-- The words of a text, as stems and pairs. Those of the title count for more, and are also stored
-- as they are.
create function search_vector(title text, rest text) returns tsvector
language plpgsql immutable strict parallel safe as $$
declare
  folded_title text := search_fold(title);
  folded_rest text := search_fold(rest);
begin
  return setweight(to_tsvector('english', folded_title), 'A')
    || setweight(to_tsvector('simple', folded_title || ' ' || search_pairs(folded_title)), 'A')
    || setweight(to_tsvector('english', folded_rest), 'B')
    || setweight(to_tsvector('simple', search_pairs(folded_rest)), 'B');
end
$$;

-- A search text as a query for such words. Each word must match, by itself or by its stem. Words
-- that English leaves out ("the", "will") count only if there are no others. "Two words" in quotes
-- and words written together ("gpt-5") follow each other; "-word" must be missing; "or" separates
-- alternatives. If is_prefix, the last word may be the beginning of a longer one.
create function search_query(given text, is_prefix boolean) returns tsquery
language plpgsql immutable strict parallel safe
-- Otherwise Postgres tells the client of each word that it leaves out.
set client_min_messages = warning
as $$
declare
  parts text[] := array(
    select m[1]
    from regexp_matches(
      translate(given, '“”„«»', '"""""'), '-?"[^"]*"?|[^[:space:]"]+', 'g'
    ) as m
  );
  folded text;
  pairs text;
  exact tsquery;
  stems tsquery;
  wanted tsquery;
  wanted_exact tsquery;
  without tsquery;
  found tsquery;
  found_exact tsquery;
begin
  for n in 1 .. cardinality(parts) + 1 loop
    if n > cardinality(parts) or lower(parts[n]) = 'or' then
      -- An alternative that only names what must be missing would find nearly everything.
      wanted := coalesce(wanted && without, wanted);
      wanted_exact := coalesce(wanted_exact && without, wanted_exact);
      found := coalesce(found || wanted, found, wanted);
      found_exact := coalesce(found_exact || wanted_exact, found_exact, wanted_exact);
      wanted := null;
      wanted_exact := null;
      without := null;
      continue;
    end if;
    folded := search_fold(parts[n]);
    continue when folded = '';
    pairs := search_pairs(folded);
    exact := plainto_tsquery('simple', pairs);
    stems := exact;
    if cardinality(string_to_array(pairs, ' ')) <> cardinality(string_to_array(folded, ' ')) - 1
      or pairs = '' then
      exact := exact && phraseto_tsquery('simple', folded);
      stems := stems && phraseto_tsquery('english', folded);
    end if;
    continue when numnode(exact) = 0;
    if left(parts[n], 1) = '-' then
      if numnode(stems) = 0 then stems := exact; end if;
      without := coalesce(without && !! stems, !! stems);
      continue;
    end if;
    if is_prefix and n = cardinality(parts)
      and folded !~ '^[0-9]+$' and right(parts[n], 1) <> '"' then
      exact := (exact::text || ':*')::tsquery;
    end if;
    wanted_exact := coalesce(wanted_exact && exact, exact);
    continue when numnode(stems) = 0;
    if stems::text <> exact::text then stems := stems || exact; end if;
    wanted := coalesce(wanted && stems, stems);
  end loop;
  return coalesce(found, found_exact, plainto_tsquery('simple', ''));
end
$$;

-- A table of its own, because a new column would lock all questions while each is written again.
-- The column questions.search and its index go with a later migration, when no running program reads it.
create table question_words (
  question_id uuid primary key references questions (id) on delete cascade,
  -- False for drafts.
  is_public boolean not null,
  -- The title alone is narrow. Most searches end there, because matches in titles come first.
  title tsvector not null,
  words tsvector not null
);

-- Linked agents that are not suspended.
create table agent_words (
  agent_id uuid primary key references agents (id) on delete cascade,
  words tsvector not null
);

-- Words of published questions and of agents, to which a word with a typing error is corrected. Not
-- unique: transactions that add the same word would wait for each other.
create table known_words (word text not null check (char_length(word) between 3 and 40));

create function new_words(given text) returns setof text language sql stable
begin atomic
  select distinct found
  from regexp_split_to_table(search_fold(given), ' +') as found
  where char_length(found) between 3 and 40 and found !~ '[0-9]'
    and not exists (select from known_words k where k.word collate "C" = found);
end;

create function note_question_words() returns trigger language plpgsql as $$
begin
  insert into question_words (question_id, is_public, title, words)
  values (
    new.id,
    new.status <> 'draft',
    search_vector(new.question, ''),
    search_vector(new.question, array_to_string(new.options, ' ') || ' ' || new.description)
  )
  on conflict (question_id) do update set
    is_public = excluded.is_public, title = excluded.title, words = excluded.words;
  if new.status <> 'draft' then
    insert into known_words (word) select new_words(new.question);
  end if;
  return null;
end
$$;
create trigger questions_note_words after insert on questions
  for each row execute function note_question_words();
create trigger questions_note_new_words after update of question, options, description, status
  on questions
  for each row
  when (
    (old.question, old.options, old.description, old.status = 'draft')
      is distinct from (new.question, new.options, new.description, new.status = 'draft')
  )
  execute function note_question_words();

create function note_agent_words() returns trigger language plpgsql as $$
begin
  if new.owner_id is null or new.suspended_at is not null then
    delete from agent_words where agent_id = new.id;
    return null;
  end if;
  insert into agent_words (agent_id, words)
  values (new.id, search_vector(new.name, new.model))
  on conflict (agent_id) do update set words = excluded.words;
  insert into known_words (word) select new_words(new.name || ' ' || new.model);
  return null;
end
$$;
-- The newest questions that match, in their title or in all of their words, without drafts unless
-- they are wanted too. Planned for each query,
-- because the best plan depends on how common its words are: an index of words, or the questions in
-- order until enough match. The costs are those of a database in memory.
create function newest_matches(
  query tsquery, most integer, with_drafts boolean, in_title boolean
)
returns setof uuid
language plpgsql stable rows 100
set random_page_cost = 1.1
set cpu_operator_cost = 0.05
as $$
begin
  return query execute format(
    '
    select w.question_id
    from question_words w
    where w.%I @@ $1 and (w.is_public or $3)
    order by w.question_id desc
    limit $2',
    case when in_title then 'title' else 'words' end
  ) using query, most, with_drafts;
end
$$;

insert into question_words (question_id, is_public, title, words)
select
  id,
  status <> 'draft',
  search_vector(question, ''),
  search_vector(question, array_to_string(options, ' ') || ' ' || description)
from questions;
insert into known_words (word)
select distinct word from questions, lateral new_words(question) as word where status <> 'draft';
create index question_words_title on question_words using gin (title);
create index question_words_words on question_words using gin (words);
create index known_words_word on known_words (word collate "C");

-- Last, because agents cannot be added or changed from here on.
create trigger agents_note_words after insert on agents
  for each row execute function note_agent_words();
create trigger agents_note_new_words after update of name, model, owner_id, suspended_at on agents
  for each row
  when (
    (old.name, old.model, old.owner_id, old.suspended_at)
      is distinct from (new.name, new.model, new.owner_id, new.suspended_at)
  )
  execute function note_agent_words();

insert into agent_words (agent_id, words)
select id, search_vector(name, model)
from agents
where owner_id is not null and suspended_at is null;
insert into known_words (word)
select distinct word
from agents a
join agent_words w on w.agent_id = a.id, lateral new_words(a.name || ' ' || a.model) as word;
create index agent_words_words on agent_words using gin (words);
create index known_words_similar on known_words using gin (word gin_trgm_ops);
