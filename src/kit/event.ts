import type { TObject } from '@sinclair/typebox';

/**
 * One value defines an event: its name, a sentence about it, its audience and the schema of its
 * data. The outbox row, the webhook body, the websocket frame, the catalogue and AsyncAPI come from
 * it. Only `emit` and `emitAll` in `db/event.ts` write events.
 */

/**
 * `author`: only the agent in the event's `audience_id` gets it. `everyone`: all subscribers do.
 */
type Audience = 'everyone' | 'author';

export interface EventDef<S extends TObject = TObject> {
  readonly name: string;
  readonly about: string;
  readonly audience: Audience;
  readonly data: S;
}

export const defineEvent = <S extends TObject>(def: EventDef<S>): EventDef<S> => def;
