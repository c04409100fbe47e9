import type { Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import { pageSchema } from '../../http/schemas.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import { findAgent } from '../accounts/index.js';
import { agents_faults } from '../accounts/schema.js';
import type { ConsensusParts } from '../consensus/index.js';
import { chanceIn } from '../consensus/reading.js';
import { beginSettings } from '../digests/index.js';
import { nextDigestAt } from '../digests/rules.js';
import { usual_move_points } from '../notifications/schema.js';
import type { QuestionParts } from '../questions/index.js';
import { question_faults } from '../questions/schema.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { model_families } from '../taxonomy/model-family.js';
import type { Pillar } from '../taxonomy/rules.js';
import { readFigures } from './news-store.js';
import { readSearch, type Search, searchName, searchText, visit_gap_ms } from './rules.js';
import * as wire from './schema.js';
import * as store from './store.js';

/** Routes to follow and unfollow something, and to list it. */

type Needs = Deps & ConsensusParts & QuestionParts & TaxonomyParts;

const route = routeFor<Needs>();
const path = '/api/me/follows';
const one = {
  path: `${path}/{kind}/{id}`,
  tag: 'follows',
  auth: 'either',
  params: wire.follow_params,
} as const;

const nameOf = ({ kind, subject, title }: store.FollowRow, pillars: readonly Pillar[]): string =>
  title ?? (kind === 'search' ? searchName(subject, pillars) : subject);

const show = (row: store.FollowRow, pillars: readonly Pillar[]): wire.Follow => ({
  kind: row.kind,
  id: row.subject,
  name: nameOf(row, pillars),
  move_points: row.kind === 'question' ? row.move_points : null,
  created_at: row.created_at.toISOString(),
});

interface Wanted extends store.Subject {
  /** Only for a search. */
  readonly search?: Search;
}

/** Reads the subject in the path, without checking that a question or agent exists. */
const readSubject = (
  { kind, id }: { readonly kind: wire.FollowKind; readonly id: string },
  pillars: readonly Pillar[],
): Wanted | Fault => {
  if (kind === 'search') {
    const search = readSearch(id, pillars);
    return isFault(search) ? search : { kind, subject: searchText(search), search };
  }
  const subject = id.toLowerCase();
  const is_known =
    kind === 'family' ? model_families.some((name) => name === subject) : isId(subject);
  return is_known ? { kind, subject } : refuseUnknown(kind);
};

const refuseUnknown = (kind: wire.FollowKind): Fault => {
  if (kind === 'question') return refuse(question_faults.QUESTION_NOT_FOUND);
  return refuse(
    kind === 'agent' ? agents_faults.AGENT_NOT_FOUND : wire.follow_faults.FAMILY_NOT_FOUND,
  );
};

/** Returns whether a question or agent can be followed. Drafts cannot. */
const exists = async ({ kind, subject }: store.Subject, { sql, questions }: Needs) => {
  if (kind === 'question') {
    const question = await questions.read(subject);
    return question !== undefined && question.status !== 'draft';
  }
  return kind !== 'agent' || (await findAgent(sql, subject)) !== undefined;
};

/** A person's first follow begins a weekly digest. */
const beginDigests = (tx: Tx, human_id: string, now: Date): Promise<void> =>
  beginSettings(tx, human_id, {
    digest: 'weekly',
    move_points: usual_move_points,
    next_digest_at: nextDigestAt('weekly', now),
  });

const putFollow = route({
  ...one,
  id: 'putFollow',
  method: 'PUT',
  summary: 'Follow a question, agent, model family or search',
  query: wire.follow_query,
  returns: { 200: wire.follow_schema, 201: wire.follow_schema },
  faults: [
    question_faults.QUESTION_NOT_FOUND,
    agents_faults.AGENT_NOT_FOUND,
    wire.follow_faults.FAMILY_NOT_FOUND,
    wire.follow_faults.INVALID_SEARCH,
    wire.follow_faults.FOLLOW_LIMIT_REACHED,
  ],
  async handle({ params, query, caller }, deps) {
    const { sql, clock, consensus, taxonomy } = deps;
    const pillars = await taxonomy.read();
    const wanted = readSubject(params, pillars);
    if (isFault(wanted)) return wanted;
    if (!(await exists(wanted, deps))) return refuseUnknown(wanted.kind);
    const { kind, subject, search } = wanted;
    const [heard = null] = kind === 'question' ? await readFigures(sql, consensus, [subject]) : [];
    const row = await sql.begin(async (tx) => {
      const followed = await store.putFollow(tx, caller, {
        kind,
        subject,
        heard: heard?.figures ?? null,
        move_points: query.move_points ?? null,
        at: clock(),
      });
      if (followed === null) return null;
      if (search !== undefined) await store.putSearch(tx, subject, search);
      if (caller.kind === 'human') await beginDigests(tx, caller.id, clock());
      return followed;
    });
    if (row === null) return refuse(wire.follow_faults.FOLLOW_LIMIT_REACHED);
    return reply(row.is_new ? 201 : 200, show(row, pillars));
  },
});

const getFollow = route({
  ...one,
  id: 'getFollow',
  method: 'GET',
  summary: 'One thing that the caller follows; 404 if the caller does not follow it',
  returns: { 200: wire.follow_schema },
  faults: [common_faults.NOT_FOUND, wire.follow_faults.INVALID_SEARCH],
  async handle({ params, caller }, { sql, taxonomy }) {
    const pillars = await taxonomy.read();
    const wanted = readSubject(params, pillars);
    if (isFault(wanted)) return wanted;
    const row = await store.findFollow(sql, caller, wanted);
    return row === undefined ? refuse(common_faults.NOT_FOUND) : reply(200, show(row, pillars));
  },
});

const deleteFollow = route({
  ...one,
  id: 'deleteFollow',
  method: 'DELETE',
  summary: 'Unfollow something',
  returns: { 204: null },
  faults: [wire.follow_faults.INVALID_SEARCH],
  async handle({ params, caller }, { sql, taxonomy }) {
    const wanted = readSubject(params, await taxonomy.read());
    if (isFault(wanted)) return wanted;
    await sql.begin((tx) => store.deleteFollow(tx, caller, wanted));
    return reply(204, undefined);
  },
});

/** Changes are counted for this long. An earlier time is moved to this limit. */
const max_changes_ms = 90 * 86_400_000;

/** Returns the changes of each question since a time, by question. */
const readChanges = async (
  ids: readonly string[],
  since: Date,
  { reads, consensus }: Needs,
): Promise<ReadonlyMap<string, wire.Changes>> => {
  if (ids.length === 0) return new Map();
  const [counts, before, now] = await Promise.all([
    store.countSince(reads, ids, since),
    consensus.findAll(ids, since),
    consensus.findAll(ids, null),
  ]);
  const chanceOf = (found: typeof now, id: string): number | null => {
    const one = found.find(({ question_id }) => question_id === id);
    return one === undefined ? null : chanceIn(one);
  };
  return new Map(
    counts.map(({ question_id, predictions, comments }) => [
      question_id,
      {
        since: since.toISOString(),
        forecast_before: chanceOf(before, question_id),
        forecast: chanceOf(now, question_id),
        predictions,
        comments,
      },
    ]),
  );
};

const listFollows = route({
  id: 'listFollows',
  method: 'GET',
  path,
  summary: 'Everything that the caller follows, newest first',
  tag: 'follows',
  auth: 'either',
  query: wire.follows_query,
  returns: { 200: pageSchema('follows', wire.follow_schema) },
  async handle({ query, caller }, deps) {
    const { sql, taxonomy } = deps;
    const pillars = await taxonomy.read();
    const { kind, changes_since } = query;
    let changes: ReadonlyMap<string, wire.Changes> = new Map();
    return replyPage({
      path,
      query,
      plural: 'follows',
      async read(page) {
        const rows = await store.listFollows(sql, caller, kind, page);
        if (changes_since !== undefined) {
          const ids = rows.filter((row) => row.kind === 'question').map(({ subject }) => subject);
          const oldest_ms = deps.clock().getTime() - max_changes_ms;
          const since = new Date(Math.max(Date.parse(changes_since), oldest_ms));
          changes = await readChanges(ids, since, deps);
        }
        return rows;
      },
      show: (row) => {
        const changed = row.kind === 'question' ? changes.get(row.subject) : undefined;
        return { ...show(row, pillars), ...(changed === undefined ? {} : { changes: changed }) };
      },
      count: () => store.countFollows(sql, caller, kind).then((total) => ({ total })),
    });
  },
});

const visitFollows = route({
  id: 'visitFollows',
  method: 'POST',
  path: `${path}/visit`,
  summary: 'Note a visit to the followed things, and return when the visit before it began',
  tag: 'follows',
  auth: 'human',
  returns: { 200: wire.visit_schema },
  async handle({ caller }, { sql, clock }) {
    const since = await store.noteVisit(sql, caller.id, { at: clock(), gap_ms: visit_gap_ms });
    return reply(200, { since });
  },
});

export const routes = [listFollows, putFollow, getFollow, deleteFollow, visitFollows];
