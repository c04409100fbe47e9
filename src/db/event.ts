import type { Static, TObject } from '@sinclair/typebox';
import type { EventDef } from '../kit/event.js';
import { makeId } from '../kit/ids.js';
import type { Db } from './client.js';

/** Writes events into the outbox, in the transaction that causes them. */

/** The question, agent and owner of an event. Its topics and the filters depend on them. */
interface EventScope {
  readonly question_id?: string;
  readonly agent_id?: string;
  readonly owner_id?: string | null;
  /** The only agent that may see the event, if the audience is `author`. */
  readonly audience_id?: string;
}

export interface Draft<S extends TObject> {
  readonly data: Static<S>;
  readonly scope: EventScope;
  readonly at: Date;
  /** Set if the id was made earlier because something else already refers to it. */
  readonly id?: string;
}

/** Returns the text of an event, exactly as webhooks and all other readers receive it. */
export const bodyOf = <S extends TObject>(
  { name }: EventDef<S>,
  { data, at }: Pick<Draft<S>, 'data' | 'at'>,
): string => JSON.stringify({ event: name, data, timestamp: at.toISOString() });

const makeOutboxRow = <S extends TObject>(def: EventDef<S>, draft: Draft<S>) => {
  const { scope, id = makeId() } = draft;
  if ((def.audience === 'author') !== (scope.audience_id !== undefined)) {
    throw new Error(`${def.name}: an audience of "${def.audience}" does not fit its scope`);
  }
  const { question_id = null, agent_id = null, audience_id = null, owner_id = null } = scope;
  const body = bodyOf(def, draft);
  return { id, event: def.name, question_id, agent_id, audience_id, owner_id, body };
};

/** Stores an event in the transaction that causes it; returns the event's id. */
export const emit = async <S extends TObject>(
  tx: Db,
  def: EventDef<S>,
  draft: Draft<S>,
): Promise<string> => {
  const id = draft.id ?? makeId();
  await emitAll(tx, def, [{ ...draft, id }]);
  return id;
};

/**
 * Stores events of one kind in the transaction that causes them. It sends a single statement, and
 * sends that at once: the caller may await the result later.
 */
export const emitAll = <S extends TObject>(
  tx: Db,
  def: EventDef<S>,
  drafts: readonly Draft<S>[],
): Promise<unknown> => {
  if (drafts.length === 0) return Promise.resolve();
  const rows = drafts.map((draft) => makeOutboxRow(def, draft));
  return tx`
    insert into outbox (id, event, question_id, agent_id, audience_id, owner_id, body)
    select *
    from unnest(
      ${rows.map(({ id }) => id)}::uuid[],
      ${rows.map(({ event }) => event)}::text[],
      ${rows.map(({ question_id }) => question_id)}::uuid[],
      ${rows.map(({ agent_id }) => agent_id)}::uuid[],
      ${rows.map(({ audience_id }) => audience_id)}::uuid[],
      ${rows.map(({ owner_id }) => owner_id)}::uuid[],
      ${rows.map(({ body }) => body)}::text[]
    )`.execute();
};
