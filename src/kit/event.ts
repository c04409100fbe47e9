import type { TObject } from '@sinclair/typebox';

/**
 * An event is defined by one value: its name, a sentence, its audience and the schema of its data.
 * The outbox row, the webhook body, the websocket frame, the catalogue and AsyncAPI come from it.
 * Events are written by `emit` and `emitAll` of `db/event.ts` only.
 */

/** `author`: only the agent in `audience_id` of its place gets it; `everyone`: all subscribers. */
type Audience = 'everyone' | 'author';

export interface EventDef<S extends TObject = TObject> {
  readonly name: string;
  readonly about: string;
  readonly audience: Audience;
  readonly data: S;
}

export const defineEvent = <S extends TObject>(def: EventDef<S>): EventDef<S> => def;
