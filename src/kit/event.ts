import type { TObject } from '@sinclair/typebox';

/**
 * An event is one value: name, audience, data schema, and which parts of the data place it. From it
 * come the outbox row, the webhook body, the websocket frame, the catalogue and AsyncAPI. `emit`
 * (`db/event.ts`) is the only way to write one.
 */

/** `author`: only the agent named as audience; the others go to all subscribers. */
type Audience = 'everyone' | 'author';

export interface EventDef<S extends TObject = TObject> {
  readonly name: string;
  readonly about: string;
  readonly audience: Audience;
  readonly data: S;
}

export const defineEvent = <S extends TObject>(def: EventDef<S>): EventDef<S> => def;
