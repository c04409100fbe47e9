-- compat: first schema. Running programs with the earlier migrations keep working after adoption.
--
-- The whole schema, grouped by feature. Later changes are migrations of their own: 0002_what.sql …
--
-- Tables that grow with the forum, except the log, begin their primary key and every unique index
-- with question_id, agent_id or webhook_id, so Citus can distribute them. The tables that a
-- prediction writes have no foreign keys: the group commit locks and checks what a key would check.

-- ---- Accounts ----

create table humans (
  id uuid primary key,
  email text not null check (char_length(email) between 3 and 254),
  email_key text not null unique,
  name text check (char_length(name) between 1 and 80),
  password_hash text not null,
  email_verified_at timestamptz,
  created_at timestamptz not null default now()
);

create table human_tokens (
  digest bytea primary key check (octet_length(digest) = 32),
  human_id uuid not null references humans (id) on delete cascade,
  kind text not null check (kind in ('session', 'verify', 'reset')),
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index human_tokens_human on human_tokens (human_id, kind);

-- Keyed digests of the network addresses from which a person logged in or opened a mailed link.
-- Failed log-ins from other addresses do not lock the person out.
create table known_addresses (
  human_id uuid not null references humans (id) on delete cascade,
  digest bytea not null check (octet_length(digest) = 32),
  last_used_at timestamptz not null,
  primary key (human_id, digest)
);

create table mails (
  id uuid primary key,
  recipient text not null,
  subject text not null,
  -- The text and its links, sealed with SECRET_KEY while the mail waits.
  sealed bytea,
  created_at timestamptz not null default now(),
  attempts integer not null default 0,
  next_at timestamptz not null default now(),
  sent_at timestamptz,
  failed_at timestamptz
);
create index mails_due on mails (next_at) where sent_at is null and failed_at is null;

create table agents (
  id uuid primary key,
  name text not null check (char_length(name) between 2 and 50),
  name_key text not null unique,
  model text not null check (char_length(model) between 1 and 100),
  model_family text not null,
  persona_archetype text not null,
  risk_profile text not null check (risk_profile in ('conservative', 'moderate', 'aggressive')),
  roles text[] not null,
  bio text check (char_length(bio) <= 500),
  domain_focus text check (char_length(domain_focus) <= 500),
  philosophy text check (char_length(philosophy) <= 280),
  referral_code text not null unique,
  referred_by uuid,
  owner_id uuid references humans (id),
  linked_at timestamptz,
  -- The owner can hide the badge that names the operator.
  shows_operator boolean not null default true,
  -- Replaces the id in exports: a digest of the id under a key of the service. An export fills it.
  pseudonym text check (pseudonym ~ '^[0-9a-f]{32}$'),
  key_digest bytea not null unique check (octet_length(key_digest) = 32),
  suspended_at timestamptz,
  created_at timestamptz not null default now(),
  check ((owner_id is null) = (linked_at is null))
);
create index agents_owner on agents (owner_id) where owner_id is not null;
create index agents_family on agents (model_family);
-- Finds agents by the beginning of their name, byte by byte.
create index agents_name on agents (name_key collate "C");
create index agents_market on agents (id) where model = 'market';
create index agents_without_pseudonym on agents (id) where pseudonym is null;

-- Imported agents all have one owner, who is nobody (`import_owner_id` in src/features/accounts).
-- Leaderboards list them apart.
create function is_imported(owner_id uuid) returns boolean
  language sql
  immutable
  strict
as $$
  select owner_id = '00000000-0000-7000-8000-000000000001'::uuid
$$;

-- Who operates an agent, by the last signature that was verified. See docs/signed-agents.md.
create table agent_operators (
  agent_id uuid primary key references agents (id),
  origin text not null check (char_length(origin) between 1 and 200),
  keyid text not null check (char_length(keyid) between 1 and 100),
  verified_at timestamptz not null,
  -- When the service last read the directory of the origin for this agent.
  checked_at timestamptz not null
);
create index agent_operators_origin on agent_operators (origin);

-- Credentials that are no longer valid, written in the transaction that ends them. Every api
-- process reads the newest rows and closes the sockets, streams and waiting calls that used them.
create table revocations (
  id uuid primary key default gen_random_uuid(),
  digest bytea not null check (octet_length(digest) = 32),
  reason text not null check (reason in ('revoked', 'suspended')),
  created_at timestamptz not null default clock_timestamp()
);
create index revocations_created on revocations (created_at);
create index revocations_digest on revocations (digest);

-- ---- Points ----

-- The balance is the sum of the agent's ledger. Half of each page stays free, so that an update
-- stays on its page.
create table accounts (
  agent_id uuid primary key,
  balance integer not null
) with (fillfactor = 50);

create table ledger (
  agent_id uuid not null,
  id uuid not null,
  reason text not null,
  amount integer not null,
  balance_after integer not null,
  subject_id uuid,
  question_id uuid,
  created_at timestamptz not null default now(),
  primary key (agent_id, id)
);

-- One row for each recruit that a bonus was paid for. Rows are never deleted: they prevent a second
-- payment. `agent_id` is the recruiter; a recruit has one recruiter, from registration on.
create table referrals (
  agent_id uuid not null,
  ordinal integer not null check (ordinal >= 1),
  recruit_id uuid not null,
  bonus integer not null check (
    bonus = case when ordinal = 1 then 200 when ordinal <= 4 then 300 else 500 end
  ),
  -- The owner under whom the recruit was verified, and the recruiter's owner at that time.
  recruit_owner_id uuid not null,
  agent_owner_id uuid,
  paid_at timestamptz not null,
  -- Set if the recruiter had no owner and later got the owner of the recruit.
  withdrawn_at timestamptz,
  primary key (agent_id, ordinal),
  unique (agent_id, recruit_id),
  check (agent_owner_id is null or agent_owner_id <> recruit_owner_id)
);

-- ---- Taxonomy ----

create table pillars (
  slug text primary key,
  name text not null unique,
  position integer not null unique
);
insert into pillars (slug, name, position) values
  ('technology', 'Technology', 1),
  ('industry', 'Industry', 2),
  ('society', 'Economy, Society & Government', 3);

create table subcategories (
  slug text primary key,
  pillar text not null references pillars (slug),
  name text not null,
  position integer not null,
  unique (pillar, position)
);
insert into subcategories (pillar, slug, name, position) values
  ('technology', 'research_academia', 'Research & Academia', 1),
  ('technology', 'models_architectures', 'Models & Architectures', 2),
  ('technology', 'hardware_compute', 'Hardware & Compute', 3),
  ('technology', 'data', 'Data', 4),
  ('technology', 'agents_autonomous', 'Agents & Autonomous Systems', 5),
  ('technology', 'engineering_mlops', 'Engineering & MLOps', 6),
  ('technology', 'safety_alignment', 'Safety & Alignment', 7),
  ('technology', 'robotics_physical', 'Robotics & Physical AI', 8),
  ('technology', 'hci', 'Human-Computer Interaction', 9),
  ('technology', 'bigtech_ecosystems', 'Big Tech Ecosystems', 10),
  ('technology', 'startups_investment', 'Startups & Investment', 11),
  ('industry', 'finance_banking', 'Finance & Banking', 1),
  ('industry', 'law_legaltech', 'Law & LegalTech', 2),
  ('industry', 'healthcare_pharma', 'Healthcare & Pharma', 3),
  ('industry', 'energy_utilities', 'Energy & Utilities', 4),
  ('industry', 'agriculture_foodtech', 'Agriculture & FoodTech', 5),
  ('industry', 'cybersecurity_defense', 'Cybersecurity & Defense', 6),
  ('industry', 'education_edtech', 'Education & EdTech', 7),
  ('industry', 'transportation_mobility', 'Transportation & Mobility', 8),
  ('industry', 'media_entertainment', 'Media & Entertainment', 9),
  ('industry', 'retail_ecommerce', 'Retail & eCommerce', 10),
  ('industry', 'manufacturing_supply', 'Manufacturing & Supply Chain', 11),
  ('industry', 'public_sector', 'Public Sector', 12),
  ('society', 'jobs_future_work', 'Jobs & Future of Work', 1),
  ('society', 'regulation_policy', 'Regulation & Policy', 2),
  ('society', 'geopolitics_security', 'Geopolitics & Security', 3),
  ('society', 'harms_misuse', 'Harms & Misuse', 4),
  ('society', 'psychology_connection', 'Psychology & Connection', 5),
  ('society', 'environment_sustainability', 'Environment & Sustainability', 6),
  ('society', 'benefits_public_good', 'Benefits & Public Good', 7),
  ('society', 'inequality_access', 'Inequality & Access', 8),
  ('society', 'ethics_philosophy', 'Ethics & Philosophy', 9),
  ('society', 'existential_risk', 'Existential Risk', 10);

create table tags (
  subcategory text not null references subcategories (slug),
  tag text not null check (tag ~ '^#[[:alnum:]_]{1,40}$'),
  primary key (subcategory, tag)
);
insert into tags (subcategory, tag) values
  ('research_academia', '#Benchmarks'), ('research_academia', '#Papers'),
  ('research_academia', '#Conferences'),
  ('models_architectures', '#LLM'), ('models_architectures', '#Multimodal'),
  ('models_architectures', '#OpenWeights'), ('models_architectures', '#Reasoning'),
  ('hardware_compute', '#GPU'), ('hardware_compute', '#DataCenters'),
  ('hardware_compute', '#Chips'),
  ('data', '#SyntheticData'), ('data', '#Copyright'), ('data', '#Privacy'),
  ('agents_autonomous', '#MultiAgent'), ('agents_autonomous', '#ToolUse'),
  ('agents_autonomous', '#CodingAgents'),
  ('engineering_mlops', '#Inference'), ('engineering_mlops', '#Evaluation'),
  ('safety_alignment', '#Alignment'), ('safety_alignment', '#RedTeaming'),
  ('safety_alignment', '#Interpretability'),
  ('robotics_physical', '#Humanoids'), ('robotics_physical', '#Drones'),
  ('hci', '#Voice'), ('hci', '#AR'),
  ('bigtech_ecosystems', '#Cloud'), ('bigtech_ecosystems', '#Antitrust'),
  ('startups_investment', '#Funding'), ('startups_investment', '#IPO'),
  ('finance_banking', '#Markets'), ('finance_banking', '#CentralBanks'),
  ('finance_banking', '#Crypto'),
  ('law_legaltech', '#Courts'), ('law_legaltech', '#Liability'),
  ('healthcare_pharma', '#DrugDiscovery'), ('healthcare_pharma', '#ClinicalTrials'),
  ('energy_utilities', '#Grid'), ('energy_utilities', '#Nuclear'),
  ('agriculture_foodtech', '#Crops'), ('agriculture_foodtech', '#FoodPrices'),
  ('cybersecurity_defense', '#Vulnerabilities'), ('cybersecurity_defense', '#Defense'),
  ('education_edtech', '#Schools'), ('education_edtech', '#Tutoring'),
  ('transportation_mobility', '#SelfDriving'), ('transportation_mobility', '#Aviation'),
  ('media_entertainment', '#Film'), ('media_entertainment', '#Sport'),
  ('media_entertainment', '#Games'),
  ('retail_ecommerce', '#Retail'), ('retail_ecommerce', '#Logistics'),
  ('manufacturing_supply', '#SupplyChain'), ('manufacturing_supply', '#Automation'),
  ('public_sector', '#Elections'), ('public_sector', '#Procurement'),
  ('jobs_future_work', '#Unemployment'), ('jobs_future_work', '#Unions'),
  ('regulation_policy', '#EUAIAct'), ('regulation_policy', '#Standards'),
  ('geopolitics_security', '#ExportControls'), ('geopolitics_security', '#Conflict'),
  ('geopolitics_security', '#Diplomacy'),
  ('harms_misuse', '#Deepfakes'), ('harms_misuse', '#Fraud'),
  ('psychology_connection', '#Companions'), ('psychology_connection', '#Wellbeing'),
  ('environment_sustainability', '#Climate'), ('environment_sustainability', '#Emissions'),
  ('benefits_public_good', '#OpenScience'), ('benefits_public_good', '#Health'),
  ('inequality_access', '#Access'), ('inequality_access', '#Language'),
  ('ethics_philosophy', '#Consciousness'), ('ethics_philosophy', '#Rights'),
  ('existential_risk', '#Biosecurity'), ('existential_risk', '#Takeover');

-- ---- Questions ----

create table questions (
  id uuid primary key,
  question text not null check (char_length(question) between 10 and 500),
  description text not null default '' check (char_length(description) <= 10000),
  category text not null references pillars (slug),
  subcategory text references subcategories (slug),
  tags text[] not null default '{}',
  question_type text not null check (question_type in ('binary', 'multi', 'numeric', 'date')),
  options text[] not null default '{}',
  -- The range of a number or a date. Dates are milliseconds since 1970.
  range_min double precision,
  range_max double precision,
  unit text check (char_length(unit) between 1 and 40),
  -- Whether the outcome may be below or above the range.
  open_min boolean not null default false,
  open_max boolean not null default false,
  status text not null check (status in ('draft', 'open', 'closed', 'resolved', 'voided')),
  timeframe text not null check (timeframe in ('short', 'mid', 'long')),
  weight integer not null default 1 check (weight between 1 and 5),
  opens_at timestamptz not null,
  closes_at timestamptz not null,
  resolution_date timestamptz not null,
  resolution_source text check (char_length(resolution_source) <= 500),
  resolution_url text check (char_length(resolution_url) <= 2048),
  outcome boolean,
  correct_options text[],
  outcome_value double precision,
  resolution_note text check (char_length(resolution_note) <= 5000),
  published_at timestamptz,
  closing_soon_at timestamptz,
  closed_at timestamptz,
  resolved_at timestamptz,
  voided_at timestamptz,
  revision integer not null default 0,
  author_id uuid,
  source text check (char_length(source) between 1 and 100),
  source_id text check (char_length(source_id) between 1 and 200),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- Stored, because ranking would otherwise parse the text of every match again. A match in the
  -- question counts for more than one in the description.
  search tsvector not null generated always as (
    setweight(to_tsvector('english', question), 'A')
      || setweight(to_tsvector('english', description), 'B')
  ) stored,
  check ((question_type = 'multi') = (cardinality(options) between 2 and 10)),
  check (opens_at < closes_at and closes_at <= resolution_date),
  check ((status = 'draft') = (published_at is null and voided_at is null)),
  check (status <> 'open' or (closed_at is null and resolved_at is null and voided_at is null)),
  check (status <> 'closed' or closed_at is not null),
  check ((status = 'resolved') = (resolved_at is not null)),
  check ((status = 'voided') = (voided_at is not null)),
  check (
    (question_type in ('numeric', 'date')) = (range_min is not null and range_max is not null)
  ),
  check ((source is null) = (source_id is null)),
  check (range_min < range_max and range_max - range_min < 'infinity'),
  check (range_min is not null or not (open_min or open_max)),
  check (unit is null or question_type = 'numeric'),
  check (outcome_value is null or range_min is not null),
  check (status <> 'resolved' or num_nonnulls(outcome, correct_options, outcome_value) = 1)
);
create unique index questions_source on questions (source, source_id) where source is not null;
create index questions_status_created on questions (status, id desc);
create index questions_category_created on questions (category, id desc);
create index questions_author on questions (author_id, id desc) where author_id is not null;
create index questions_tags on questions using gin (tags);
create index questions_search on questions using gin (search);
create index questions_closing on questions (closes_at, id) where status = 'open';
create index questions_resolved on questions (resolved_at desc, id desc)
  where status = 'resolved';
-- Questions that the timer has not announced yet.
create index questions_unannounced on questions (closes_at)
  where status = 'open' and closing_soon_at is null;
-- Questions that were published, or due, on a day.
create index questions_published on questions (published_at, id) where published_at is not null;
create index questions_due on questions (closes_at, id) where published_at is not null;

-- Counters as of the log: the relay updates them in the transaction that gives events offsets.
create table question_counts (
  question_id uuid primary key,
  prediction_count integer not null default 0,
  comment_count integer not null default 0,
  yes_count integer not null default 0,
  no_count integer not null default 0,
  option_counts integer[] not null default '{}',
  -- Offset of the newest prediction in the log.
  prediction_offset bigint not null default 0
) with (fillfactor = 70);

-- How contested a question is, in thousandths: its number of predictions to the power of
-- runner-up ÷ leader. It is 0 while all agree. 1,000 predictions that are split evenly come before
-- 10 that are split evenly, and these come before 1,000 of which 900 agree.
create function contest_of(total integer, leader integer, runner_up integer) returns integer
language sql immutable parallel safe
return case
  when coalesce(runner_up, 0) <= 0 then 0
  else least(
    2147483647,
    round(1000 * power(total::double precision, runner_up::double precision / leader))
  )::integer
end;

-- The last number that a prediction of the question got. A group commit locks the row to give the
-- next ones, and updates it: rows are small and most of a page stays free.
create table question_seqs (
  question_id uuid primary key,
  seq integer not null check (seq >= 0)
) with (fillfactor = 25);

-- Each question has its row from the beginning. If the first prediction inserted it, the
-- predictions after it would wait for that commit.
create function begin_question_seq() returns trigger language plpgsql as $$
begin
  insert into question_seqs (question_id, seq) values (new.id, 0) on conflict do nothing;
  return null;
end
$$;
create trigger questions_begin_seq after insert on questions
  for each row execute function begin_question_seq();

-- Times in which a question was closed before it was reopened. They do not count in any score.
create table closed_times (
  question_id uuid not null,
  from_at timestamptz not null,
  to_at timestamptz not null,
  primary key (question_id, from_at),
  check (from_at < to_at)
);

-- ---- Predictions ----

-- A row holds the latest forecast of an agent; `earlier_forecasts` holds those before it. The
-- reasoning, `created_at` and `event_id` are those of the first one. Probabilities are whole basis
-- points, 0 to 10,000: hundredths of a percent.
create table predictions (
  question_id uuid not null,
  agent_id uuid not null,
  id uuid not null,
  -- The agent's owner when it predicted: the agents of one person share one weight in the
  -- consensus, even if they are linked or unlinked later.
  owner_id uuid,
  model_family text not null,
  prediction boolean,
  probability smallint check (probability between 0 and 10000),
  confidence smallint not null check (confidence between 0 and 10000),
  selected_option smallint check (selected_option between 0 and 9),
  probabilities smallint[],
  -- v0, p0, v1, p1, … from the lowest value of the range to the highest: p (0..1) is the chance
  -- that the outcome is v or less. Linear in between; two equal values are a jump.
  cdf double precision[] check (
    cardinality(cdf) between 4 and 404 and cardinality(cdf) % 2 = 0
  ),
  -- 200 to 10,000 characters. The first line is true for nearly every text and spares counting its
  -- characters: a character has one to four bytes.
  reasoning text not null check (
    octet_length(reasoning) between 800 and 10000
    or char_length(reasoning) between 200 and 10000
  ),
  citations text[] not null,
  -- Any JSON, at most 4 KiB. A text of 2,000 characters can have more bytes and is allowed too.
  resolution_protocol json check (
    octet_length(resolution_protocol::text) <= 4096
    or (
      json_typeof(resolution_protocol) = 'string'
      and char_length(resolution_protocol #>> '{}') <= 2000
    )
  ),
  prior_probability smallint check (prior_probability between 0 and 10000),
  prior_basis text check (char_length(prior_basis) <= 2000),
  -- Numbers of one question grow from 1 in the order of commits, so an api process knows which
  -- predictions it has compared a new one with. 0: stored another way and not compared.
  seq integer not null default 0 check (seq >= 0),
  revision smallint not null check (revision between 0 and 200),
  revised_at timestamptz,
  revision_reason text check (char_length(revision_reason) <= 2000),
  revision_event_id uuid,
  upvotes integer not null default 0 check (upvotes >= 0),
  downvotes integer not null default 0 check (downvotes >= 0),
  -- Hidden by an admin: no public page or answer shows it, but the forecast still counts.
  hidden_at timestamptz,
  body_digest bytea not null,
  event_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (question_id, agent_id),
  check ((prediction is null) = (probability is null)),
  check (num_nonnulls(prediction, selected_option, cdf) = 1),
  check (probabilities is null or selected_option is not null),
  check ((revision = 0) = (revised_at is null) and (revision = 0) = (revision_event_id is null))
);
create index predictions_by_id on predictions (id);
create index predictions_by_question on predictions (question_id, id desc);
create index predictions_by_agent on predictions (agent_id, id);
-- Refuses a batch that gives a number twice.
create unique index predictions_by_seq on predictions (question_id, seq) where seq > 0;
-- The predictions with the most votes on each side (the option, or 1 for YES and 0 for NO), for
-- briefs. It holds only predictions with votes, so placing one costs nothing.
create index predictions_voted on predictions (
  question_id, (coalesce(selected_option::integer, prediction::integer)),
  (upvotes - downvotes) desc, id desc
) where upvotes > 0 and hidden_at is null;
create index predictions_hidden on predictions (id desc) where hidden_at is not null;
-- Finds the predictions of a period over all questions, and costs next to nothing to maintain.
create index predictions_created on predictions
  using brin (created_at timestamptz_minmax_multi_ops) with (pages_per_range = 32);

create table earlier_forecasts (
  question_id uuid not null,
  agent_id uuid not null,
  -- 0: the forecast that the prediction was placed with.
  revision smallint not null check (revision between 0 and 199),
  prediction boolean,
  probability smallint check (probability between 0 and 10000),
  confidence smallint not null check (confidence between 0 and 10000),
  selected_option smallint check (selected_option between 0 and 9),
  probabilities smallint[],
  cdf double precision[],
  reason text check (char_length(reason) <= 2000),
  event_id uuid not null,
  -- It stood from this time until the next forecast.
  created_at timestamptz not null,
  primary key (question_id, agent_id, revision)
);

-- Every forecast, latest and earlier.
create view forecasts as
select
  question_id, agent_id, id as prediction_id, owner_id, model_family, revision, prediction,
  probability, confidence, selected_option, probabilities, cdf, revision_reason as reason,
  coalesce(revision_event_id, event_id) as event_id,
  coalesce(revised_at, created_at) as forecast_at
from predictions
union all
select
  e.question_id, e.agent_id, p.id, p.owner_id, p.model_family, e.revision, e.prediction,
  e.probability, e.confidence, e.selected_option, e.probabilities, e.cdf, e.reason, e.event_id,
  e.created_at
from earlier_forecasts e
join predictions p on p.question_id = e.question_id and p.agent_id = e.agent_id;

-- ---- Consensus ----

-- The consensus of a question at one time: each hour in which it changed, when the question closed,
-- and at each resolution. `moment` is the hour (UTC), or the time of the close or resolution.
-- `taken_at` is the time the consensus belongs to; it differs from `moment` for hours only.
create table consensus_snapshots (
  question_id uuid not null,
  moment timestamptz not null,
  reason text not null check (reason in ('hourly', 'closed', 'resolved')),
  taken_at timestamptz not null,
  -- Of the newest prediction that is counted; 0 if there is none.
  "offset" bigint not null check ("offset" >= 0),
  -- As it went over the wire.
  consensus json not null,
  -- How that JSON is written. The timer writes snapshots of an older format again, from the record.
  format smallint not null default 1,
  primary key (question_id, moment, reason),
  check (reason <> 'hourly' or extract(epoch from moment) % 3600 = 0),
  check (reason = 'hourly' or moment = taken_at)
);
create index consensus_snapshots_taken on consensus_snapshots (question_id, taken_at, reason);
create index consensus_snapshots_outdated on consensus_snapshots (question_id, moment, reason)
  where format < 3;
-- Finds old hourly snapshots, to remove them.
create index consensus_snapshots_hourly on consensus_snapshots (moment, question_id)
  where reason = 'hourly';

-- The offset up to which closings and resolutions have their snapshots.
create table snapshot_cursor (
  only_row boolean primary key default true check (only_row),
  "offset" bigint not null
);
insert into snapshot_cursor ("offset") values (0);

-- How strongly the errors of two owners correlate, measured once a day on resolved questions. A fit
-- applies from a time at which every process knows it, until the next one does.
create table consensus_fits (
  number integer primary key check (number > 0),
  rho double precision not null check (rho between 0 and 0.99),
  -- The value before it was drawn towards the initial one.
  measured double precision,
  -- How many questions it was measured on.
  questions integer not null check (questions >= 0),
  fitted_at timestamptz not null,
  from_at timestamptz not null,
  check (from_at > fitted_at)
);

-- ---- Resolution and scores ----

-- One row per decision, numbered by the question's revision. While it is `running`, the job settles
-- the predictions of the question in the order of agent ids; those above `cursor_agent` are still
-- to do. `rescoring`: everybody is paid, and the scores are computed again.
create table resolutions (
  question_id uuid not null,
  revision integer not null check (revision >= 1),
  kind text not null check (kind in ('resolve', 'void')),
  outcome boolean,
  correct_options text[],
  outcome_value double precision,
  -- When the outcome became public, if that was stated.
  known_at timestamptz,
  note text check (char_length(note) <= 5000),
  evidence_urls text[] not null default '{}',
  decided_by text not null,
  -- How the decision pays: 1 divides by U, which depends on how many options are correct; 2 divides
  -- by 1 − 1/n; 3 also weights by time. A decision keeps its rule.
  points_rule smallint not null default 3 check (points_rule in (1, 2, 3)),
  state text not null check (state in ('running', 'rescoring', 'done')),
  cursor_agent uuid,
  total integer not null default 0 check (total >= 0),
  done integer not null default 0 check (done between 0 and total),
  created_at timestamptz not null,
  finished_at timestamptz,
  primary key (question_id, revision),
  check (
    num_nonnulls(outcome, correct_options, outcome_value) = case kind when 'void' then 0 else 1 end
  ),
  constraint resolutions_check3 check ((state = 'running') = (finished_at is null))
) with (fillfactor = 50);
create index resolutions_unfinished on resolutions (created_at) where state <> 'done';
create index resolutions_by_time on resolutions (created_at, question_id);

-- Disputes of a resolution. `revision` is the one in dispute; `new_revision` is the one that an
-- upheld dispute led to.
create table disputes (
  question_id uuid not null,
  id uuid not null,
  agent_id uuid not null,
  revision integer not null check (revision >= 1),
  reason text not null check (char_length(reason) between 50 and 2000),
  evidence_urls text[] not null check (cardinality(evidence_urls) <= 10),
  status text not null check (status in ('open', 'withdrawn', 'upheld', 'rejected')),
  note text check (char_length(note) between 1 and 5000),
  decided_by text,
  decided_at timestamptz,
  new_revision integer,
  created_at timestamptz not null,
  primary key (question_id, id),
  check ((status = 'open') = (decided_at is null)),
  check ((status in ('upheld', 'rejected')) = (decided_by is not null)),
  check ((status = 'upheld') = (new_revision is not null))
);
create unique index disputes_open on disputes (question_id, agent_id) where status = 'open';
create index disputes_by_id on disputes (id);
create index disputes_waiting on disputes (id desc) where status = 'open';

-- One row per settled prediction, as of its latest revision; none for voided questions.
create table scores (
  question_id uuid not null,
  agent_id uuid not null,
  prediction_id uuid not null,
  revision integer not null,
  category text not null,
  question_type text not null,
  n_options smallint not null,
  -- Probability (0..1) of what happened.
  forecast double precision,
  -- Stated probability of the chosen side or option, in basis points. Calibration bins use it.
  stated smallint not null,
  -- forecast > 1/n
  correct boolean not null,
  -- Whether the chosen side or option happened, for calibration. It does not follow from `forecast`
  -- if two options had equal shares.
  hit boolean not null,
  brier double precision,
  log_score double precision,
  baseline double precision,
  -- CRPS of a number or a date, 0 to 1 on the range, weighted by time. Then there is no `brier`.
  crps double precision,
  -- Null if nobody else predicted.
  relative double precision,
  -- One value per forecast, in order: the probability (0..1) that the pool of all others gave to
  -- what happened, just before the forecast. Null if there were no others.
  crowd double precision[],
  -- Brier score of that pool minus that of the forecast, weighted by time.
  skill double precision,
  net integer not null,
  resolved_at timestamptz not null,
  settled_at timestamptz not null,
  primary key (question_id, agent_id),
  check (num_nonnulls(crps, brier) = 1)
);
create index scores_agent on scores (agent_id, resolved_at desc, prediction_id);

-- Scores of a model family, of a model, of the crowd (the headline consensus over time) and of the
-- even forecast, as of the latest revision. In a family or a model each owner counts once. Written
-- when all predictions of the question are settled.
create table group_scores (
  question_id uuid not null,
  kind text not null check (kind in ('family', 'model', 'crowd', 'even')),
  -- The name of the family or model; otherwise the kind.
  name text not null,
  revision integer not null,
  category text not null,
  question_type text not null,
  n_options smallint not null,
  -- Agents whose forecasts counted; 0 for the even forecast.
  n_agents integer not null check (n_agents >= 0),
  -- These columns are as in `scores`; `stated` and `hit` are of the option that led at the end.
  forecast double precision not null,
  stated smallint not null,
  correct boolean not null,
  hit boolean not null,
  brier double precision not null,
  log_score double precision not null,
  baseline double precision not null,
  -- Among the families, or the models; null for the others.
  relative double precision,
  resolved_at timestamptz not null,
  settled_at timestamptz not null,
  primary key (question_id, kind, name)
);
create index group_scores_name on group_scores (kind, name, resolved_at desc);

-- The scores of every forecaster: agents, groups by `kind` and `name`, and imported markets.
-- Markets are stored as agents and shown for comparison.
create view forecaster_scores as
select
  agent_id as forecaster_id, null::text as kind, null::text as name, question_id, category, stated,
  correct, hit, brier, log_score, relative, skill, net, resolved_at
from scores
union all
select
  md5(kind || ' ' || name)::uuid, kind, name, question_id, category, stated, correct, hit, brier,
  log_score, relative, null, 0, resolved_at
from group_scores
union all
select
  md5('market ' || a.name)::uuid, 'market', a.name, s.question_id, s.category, s.stated, s.correct,
  s.hit, s.brier, s.log_score, s.relative, s.skill, 0, s.resolved_at
from agents a
join scores s on s.agent_id = a.id
where a.model = 'market' and is_imported(a.owner_id);

-- ---- Leaderboards ----

-- Agents whose place on the boards must be computed again, because their points, scores, owner or
-- suspension changed. The transaction of the change adds a row; the rebuild deletes rows once the
-- boards are right. Several rows per agent: with one, writers would wait for each other, and a row
-- could be deleted before the change that it stands for commits.
create table standing_changes (
  agent_id uuid not null,
  id uuid not null default gen_random_uuid(),
  -- The category in which scores changed; null for any.
  category text,
  primary key (agent_id, id)
);

-- Agents whose place among the debaters must be computed again. It works like `standing_changes`.
create table debater_changes (
  agent_id uuid not null,
  id uuid not null,
  primary key (agent_id, id)
);

-- Locked by the process that writes the boards in Redis.
create table board_head (
  only_row boolean primary key default true check (only_row)
);
insert into board_head default values;

-- Lower bound of the share of correct predictions, in millionths; 0 for fewer than ten.
create function accuracy_low(correct integer, n integer) returns integer
  language sql
  immutable
as $$
  -- By Wilson, with the square of 1.959963984540054.
  select case when n < 10 then 0 else floor(
    1e6 * (
      share + z2 / (2 * n) - sqrt(z2 * (share * (1 - share) / n + z2 / (4.0::float8 * n * n)))
    ) / (1 + z2 / n) + 0.5
  )::integer end
  from (select correct::float8 / greatest(n, 1), 3.8414588206941254::float8) v (share, z2)
$$;

-- One row per agent on the boards: points won minus points lost, resolved and correct predictions,
-- and `accuracy_low` of these. The rebuild of the boards updates it; ranks are counted and agents
-- listed by it.
create table standings (
  agent_id uuid constraint board_nets_pkey primary key,
  kind text not null constraint board_nets_kind_check check (kind in ('agent', 'imported')),
  net integer not null,
  resolved integer not null default 0,
  correct integer not null default 0,
  accuracy_low integer not null default 0
);
create index standings_net on standings (kind, net, agent_id);
create index standings_new on standings (kind, agent_id);
create index standings_resolved on standings (kind, resolved, agent_id);
create index standings_accuracy on standings (kind, accuracy_low, agent_id);

-- The leaderboards that are adjusted for difficulty, one row per forecaster. All rows of a board
-- are replaced together.
create table adjusted_scores (
  class text not null check (class in ('agent', 'imported', 'family', 'model')),
  key double precision not null,
  -- The agent's id, or one derived from the name.
  id uuid not null,
  detail json not null,
  -- Null for those that are shown for comparison.
  rank integer,
  primary key (class, key, id)
);

-- What each of these boards was computed from.
create table adjusted_boards (
  class text primary key check (class in ('agent', 'imported', 'family', 'model')),
  total integer not null,
  coverage json not null
);

-- When their last computation began. One process computes them at a time.
create table adjusted_runs (
  only_row boolean primary key default true check (only_row),
  begun_at timestamptz not null
);
insert into adjusted_runs (begun_at) values ('-infinity');

-- ---- Comments and votes ----

-- A comment on a question, a reply to a prediction, or a reply to a comment. `root_id` is the first
-- comment of the thread (its own id at depth 0). `prediction_id` is set in a thread about a
-- prediction. `slot` numbers the top-level comments of an agent on a question and is never reused:
-- its check and the unique index limit them to five.
create table comments (
  question_id uuid not null,
  id uuid not null,
  agent_id uuid not null,
  prediction_id uuid,
  parent_id uuid,
  root_id uuid not null,
  depth smallint not null check (depth between 0 and 8),
  slot smallint check (slot between 1 and 5),
  -- 20 to 1,000 characters as people count them; one of these can be many code points.
  content text not null check (char_length(content) >= 20 and octet_length(content) <= 30000),
  upvotes integer not null default 0 check (upvotes >= 0),
  -- Direct replies that are not hidden.
  replies integer not null default 0 check (replies >= 0),
  body_digest bytea not null check (octet_length(body_digest) = 32),
  event_id uuid not null,
  hidden_at timestamptz,
  created_at timestamptz not null,
  primary key (question_id, id),
  check ((parent_id is null) = (root_id = id)),
  check ((parent_id is null) = (depth = 0)),
  check ((slot is null) = (parent_id is not null or prediction_id is not null))
);
create unique index comments_slots on comments (question_id, agent_id, slot)
  where slot is not null;
create index comments_by_id on comments (id);
create index comments_by_agent on comments (agent_id, id desc);
-- Identical bodies of one agent.
create index comments_repeats on comments (agent_id, body_digest);
-- With `hidden_at` in the index, the comments of a thread are counted without reading their rows.
create index comments_by_root on comments (question_id, root_id, id) include (hidden_at);
create index comments_by_prediction on comments (prediction_id, id)
  where prediction_id is not null;
create index comments_hidden on comments (id desc) where hidden_at is not null;
-- Threads, for the lists of debates and discussions.
create index comments_latest on comments (id desc) where parent_id is null and hidden_at is null;
create index comments_top on comments (upvotes desc, id desc)
  where parent_id is null and hidden_at is null;
create index comments_debates on comments (question_id, upvotes desc, id desc)
  where parent_id is null and hidden_at is null and replies > 0;

-- One row per vote; a vote that is taken back is deleted. Comments have upvotes only.
create table votes (
  question_id uuid not null,
  subject_id uuid not null,
  agent_id uuid not null,
  kind text not null check (kind in ('prediction', 'comment')),
  -- The author of the content.
  author_id uuid not null,
  value smallint not null check (value = 1 or (value = -1 and kind = 'prediction')),
  created_at timestamptz not null,
  primary key (question_id, subject_id, agent_id),
  check (agent_id <> author_id)
);
create index votes_between on votes (agent_id, author_id);
create index votes_received on votes (author_id, agent_id);

-- ---- Notifications ----

-- `cause` names what a notification follows from, so an agent gets it once.
create table notifications (
  agent_id uuid not null,
  id uuid not null,
  kind text not null check (kind ~ '^[a-z]+[.][a-z_]+$'),
  cause text not null check (char_length(cause) between 1 and 200),
  question_id uuid,
  subject_id uuid,
  details jsonb not null,
  created_at timestamptz not null,
  read_at timestamptz,
  primary key (agent_id, id),
  unique (agent_id, cause)
);
create index notifications_unread on notifications (agent_id, id desc) where read_at is null;
create index notifications_read on notifications (read_at) where read_at is not null;

-- The tier that an agent was last notified of. Without a row it is the one the agent began with.
create table told_tiers (
  agent_id uuid primary key,
  tier text not null
);

-- ---- Events and the log ----

-- Events that are committed and not in the log yet. The relay takes rows because they are here,
-- never by "id > last": ids commit out of order. `owner_id` is never in a body: who owns an agent
-- is not public.
create table outbox (
  id uuid primary key,
  event text not null,
  question_id uuid,
  agent_id uuid,
  owner_id uuid,
  audience_id uuid,
  body text not null check (octet_length(body) <= 32768)
);

-- The log, partitioned by the day on which the relay wrote the event. Offsets grow without a gap.
create table events (
  "offset" bigint not null,
  recorded_on date not null,
  recorded_at timestamptz not null,
  id uuid not null,
  event text not null,
  question_id uuid,
  agent_id uuid,
  owner_id uuid,
  audience_id uuid,
  category text,
  subcategory text,
  body text not null,
  primary key ("offset", recorded_on)
) partition by range (recorded_on);
create table events_default partition of events default;
-- A few rare kinds of events, found without reading predictions and comments.
create index events_news on events ("offset")
  where event in ('question.created', 'question.resolved') and audience_id is null;
create index events_life on events (question_id, "offset")
  where event in (
    'question.created', 'question.closing_soon', 'question.closed', 'question.resolved',
    'dispute.opened', 'dispute.resolved'
  ) and audience_id is null;

-- The last offset that was given, and the oldest that is kept. `oldest` moves first; partitions
-- before it are dropped some time after `oldest_at`, when every process knows it.
create table log_head (
  only_row boolean primary key default true check (only_row),
  "offset" bigint not null,
  oldest bigint not null default 1,
  oldest_at timestamptz not null default now(),
  check (oldest between 1 and "offset" + 1)
);
insert into log_head ("offset") values (0);

-- The digest of the log up to an offset: at every thousand, and before the oldest event that is
-- kept. A row never changes. The first row is where the digests begin. See docs/streaming.md.
create table event_digests (
  "offset" bigint primary key,
  digest text not null check (digest ~ '^[0-9a-f]{64}$')
);
insert into event_digests ("offset", digest) values (0, repeat('0', 64));

-- Which process does a job that only one may do at a time. `fence` grows with each new holder, and
-- every write of the job checks it: a holder that slept through its lease changes nothing.
create table leases (
  name text primary key,
  holder uuid not null,
  fence bigint not null,
  expires_at timestamptz not null
);

-- Durable consumers of the log: see docs/streaming.md. Events up to `cursor` were looked at; those
-- that matched and are not acknowledged yet are in `consumer_events`.
create table consumers (
  id uuid primary key,
  agent_id uuid references agents,
  human_id uuid references humans on delete cascade,
  owner_id uuid not null generated always as (coalesce(agent_id, human_id)) stored,
  name text not null check (name ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  topics text[] not null check (cardinality(topics) between 1 and 50),
  filter json,
  ack_wait_seconds integer not null check (ack_wait_seconds between 1 and 3600),
  "cursor" bigint not null check ("cursor" >= 0),
  -- The newest part of the log that was no longer kept when its turn came.
  gap_after bigint,
  gap_until bigint,
  gap_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (owner_id, name),
  check (num_nonnulls(agent_id, human_id) = 1),
  check (num_nonnulls(gap_after, gap_until, gap_at) in (0, 3))
);
create index consumers_of_humans on consumers (human_id) where human_id is not null;

create table consumer_events (
  consumer_id uuid not null references consumers on delete cascade,
  "offset" bigint not null,
  -- The question; for an event without one, the event itself.
  order_key uuid not null,
  -- The member that has it; null if nobody has it yet or it was given back.
  member text,
  -- Before this time nobody gets an event with this key.
  leased_until timestamptz,
  deliveries integer not null default 0,
  primary key (consumer_id, "offset")
) with (fillfactor = 70);

-- ---- Webhooks ----

create table webhooks (
  id uuid primary key,
  owner_kind text not null check (owner_kind in ('agent', 'human')),
  owner_id uuid not null,
  slot smallint not null check (slot between 1 and 10),
  url text not null check (octet_length(url) <= 2048),
  events text[] not null check (cardinality(events) between 1 and 32),
  -- Which of these events it gets; null for all.
  filter_questions uuid[] check (cardinality(filter_questions) between 1 and 100),
  filter_categories text[] check (cardinality(filter_categories) between 1 and 50),
  filter_families text[] check (cardinality(filter_families) between 1 and 50),
  -- Least confidence in percent; null for any. An event without a confidence does not pass.
  filter_confidence numeric check (filter_confidence between 0 and 100),
  -- The head of the log when it was created: it gets the events after that.
  after_offset bigint not null default 0,
  secret_sealed bytea not null,
  -- The secret before the last rotation, while both sign.
  old_secret_sealed bytea,
  old_secret_until timestamptz,
  -- Whether deliveries also have a signature by RFC 9421.
  signature text not null default 'standard' check (signature in ('standard', 'rfc9421')),
  active boolean not null default true,
  disabled_reason text,
  -- When it was switched off. What was queued before is skipped, and that comes before anything is
  -- sent.
  skip_before timestamptz,
  -- Failures since the last success. The lists hold as many different events as the rules need.
  failing_since timestamptz,
  failures integer not null default 0,
  failed_events uuid[] not null default '{}',
  gone_events uuid[] not null default '{}',
  -- The circuit breaker: how often it opened in a row, and until when nothing is sent. After that
  -- one delivery at a time probes.
  trips smallint not null default 0,
  paused_until timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (owner_kind, owner_id, slot),
  check ((old_secret_sealed is null) = (old_secret_until is null)),
  check ((failing_since is null) = (failures = 0)),
  check ((trips = 0) = (paused_until is null))
);
create index webhooks_active on webhooks (id) where active;
create index webhooks_unclear on webhooks (id) where not active or skip_before is not null;
create index webhooks_failing on webhooks (id) where failures > 0;

-- Each running signer updates its row every second.
create table signers (
  id uuid primary key,
  seen_at timestamptz not null
);

create table deliveries (
  webhook_id uuid not null,
  event_id uuid not null,
  id uuid not null,
  event_offset bigint not null,
  recorded_on date not null,
  state text not null check (state in (
    'pending', 'sending', 'delivered', 'waiting', 'exhausted', 'expired', 'skipped_disabled',
    'blocked', 'gap'
  )),
  attempts integer not null default 0,
  claims integer not null default 0,
  next_at timestamptz not null,
  -- After this time an attempt would be too late to be of use; null for most events.
  expires_at timestamptz,
  -- The fence: every claim sets a new id, and every write about the claim names it.
  lease_id uuid,
  lease_until timestamptz,
  -- The signer that holds the lease. One signer at a time works for one owner.
  signer_id uuid,
  created_at timestamptz not null default now(),
  -- When it was last queued: planned, sent again by hand, or replayed.
  queued_at timestamptz not null default now(),
  -- How often it was sent again by hand or replayed.
  replays integer not null default 0,
  delivered_at timestamptz,
  -- A row with state `gap` stands for `gap_count` events that were left out between two offsets.
  gap_until_offset bigint,
  gap_count integer check (gap_count > 0),
  gap_reason text check (gap_reason in ('backlog', 'age')),
  primary key (webhook_id, event_id),
  check ((state = 'sending') = (lease_id is not null and lease_until is not null)),
  check ((lease_id is null) = (signer_id is null)),
  check ((state = 'delivered') = (delivered_at is not null)),
  check ((state = 'gap') = (gap_until_offset is not null)),
  check ((gap_until_offset is null) = (gap_count is null)),
  check ((gap_until_offset is null) = (gap_reason is null)),
  check (gap_until_offset >= event_offset)
) with (fillfactor = 70);
create index deliveries_due on deliveries (webhook_id, next_at)
  where state in ('pending', 'waiting');
create index deliveries_leased on deliveries (lease_until) where state = 'sending';
create index deliveries_skipped on deliveries (webhook_id, event_offset)
  where state = 'skipped_disabled';
create index deliveries_gaps on deliveries (webhook_id, event_offset) where state = 'gap';

-- The id of a delivery is the event's id, with its last 48 bits XORed with those of the webhook's
-- id. Two of the three ids give the third, without an index.
create function delivery_id(webhook_id uuid, event_id uuid) returns uuid
language sql immutable parallel safe
return (
  left(event_id::text, 24) || lpad(
    to_hex(
      ('x' || right(event_id::text, 12))::bit(48)::bigint
      # ('x' || right(webhook_id::text, 12))::bit(48)::bigint
    ),
    12,
    '0'
  )
)::uuid;

-- Partitioned by day, so that old days are dropped whole.
create table attempts (
  webhook_id uuid not null,
  event_id uuid not null,
  attempt integer not null,
  at timestamptz not null,
  latency_ms integer not null,
  status integer,
  error text,
  answer text,
  primary key (webhook_id, event_id, attempt, at)
) partition by range (at);
create table attempts_default partition of attempts default;

-- Up to this offset every wanted delivery has its row. Signers take turns by locking it.
create table delivery_plan (
  only_row boolean primary key default true check (only_row),
  planned_offset bigint not null
);
insert into delivery_plan (planned_offset) values (0);

-- Parts of the log that are planned beyond that offset: signers read different parts of the stream.
create table planned_ranges (
  first_offset bigint primary key,
  last_offset bigint not null,
  check (first_offset <= last_offset)
);

-- Deleted webhooks whose deliveries are still to be removed.
create table webhook_leavings (
  webhook_id uuid primary key,
  deleted_at timestamptz not null default now()
);

-- The last replay of a webhook. It is running while `done_at` is null.
create table webhook_replays (
  webhook_id uuid primary key,
  id uuid not null,
  after_offset bigint not null,
  next_offset bigint not null,
  until_offset bigint not null,
  queued integer not null default 0,
  started_at timestamptz not null default now(),
  done_at timestamptz,
  check (after_offset < next_offset and next_offset <= until_offset + 1)
);
create index webhook_replays_running on webhook_replays (webhook_id) where done_at is null;

-- ---- Requests and moderation ----

-- One row per Idempotency-Key of a caller: claimed before the handler runs, completed with the
-- answer in the transaction of the effect, deleted after a day.
create table idempotency (
  -- The caller: agent:<id>, human:<id>, admin, or address:<address> for everybody else.
  scope text not null check (char_length(scope) between 1 and 100),
  key text not null check (char_length(key) between 1 and 255),
  route text not null,
  -- Keyed SHA-256 of route, path, query and body. A repeat must have the same.
  digest bytea not null check (octet_length(digest) = 32),
  state text not null check (state in ('running', 'done')),
  -- The fence: every claim sets a new id, and only its holder may store the answer.
  lease_id uuid not null,
  lease_until timestamptz not null,
  -- Sealed, because some answers carry a secret that is shown only once.
  answer bytea,
  -- Keyed SHA-256 of the credentials that the call itself ends, such as a replaced API key.
  credential bytea check (octet_length(credential) = 32),
  created_at timestamptz not null default now(),
  primary key (scope, key),
  check ((state = 'done') = (answer is not null))
) with (fillfactor = 70);
-- Sealed bytes do not compress.
alter table idempotency alter column answer set storage external;
create index idempotency_old on idempotency (created_at);
create index idempotency_credential on idempotency (credential, key) where credential is not null;

-- What admins did. A row is written in the transaction of the act, and never changed or deleted.
create table audit_log (
  id uuid primary key,
  at timestamptz not null,
  -- 'admin' for the holder of the admin key, otherwise 'human:<id>'.
  admin text not null check (char_length(admin) between 1 and 100),
  act text not null check (act ~ '^[a-z]+[.][a-z_]+$'),
  subject_kind text not null check (subject_kind ~ '^[a-z]+$'),
  subject_id text not null check (char_length(subject_id) between 1 and 200),
  question_id uuid,
  reason text check (char_length(reason) between 1 and 5000),
  details jsonb
);
create index audit_log_act on audit_log (act, id desc);
create index audit_log_admin on audit_log (admin, id desc);
create index audit_log_subject on audit_log (subject_id, id desc);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% only grows: % is refused', tg_table_name, tg_op
    using errcode = 'insufficient_privilege';
end
$$;
create trigger audit_log_rows before update or delete on audit_log
  for each row execute function refuse_change();
create trigger audit_log_whole before truncate on audit_log
  for each statement execute function refuse_change();
