import { type TSchema, Type } from '@sinclair/typebox';
import { type AnyInput, placeOf } from '#client/calls.js';
import type { Input, OperationId } from '#client/types.js';
import type { Operations } from '#client/wire.js';
import { lists_tag } from '../features/questions/schema.js';
import { readSession } from '../http/call.js';
import type { Deps } from '../http/deps.js';
import { asFault, type FaultAnswer, type InnerCall, readFault } from '../http/inner-call.js';
import { type Context, type Reply, replyRaw, routeFor } from '../http/route.js';
import type { Fault } from '../kit/fault.js';

/**
 * What the routes of pages have in common. A page is a client of the API in the same process: it
 * gets everything it shows, and does everything it does, through `apiOf`.
 */

export interface PageDeps extends Deps {
  readonly innerCall: InnerCall;
}

const anyRoute = routeFor<PageDeps>();

/** As every route; what `api.get` threw is the refusal of the page. */
export const route = ((def: Parameters<typeof anyRoute>[0]) =>
  anyRoute({
    ...def,
    async handle(ctx, deps) {
      try {
        return await def.handle(ctx, deps);
      } catch (error) {
        if (error instanceof PageFault) return error.fault;
        throw error;
      }
    },
  })) as typeof anyRoute;

const shared = {
  tag: 'pages',
  is_page: true,
  documented: false,
  summary: 'A page for people.',
  produces: 'text/html',
} as const;
const shown = { 200: Type.String() as TSchema };
/** A form that was sent: to the next page, or the same one with what is wrong. */
const refused = [400, 401, 403, 404, 409, 422, 429, 503];
const answered = {
  ...shown,
  303: null,
  ...Object.fromEntries(refused.map((status) => [status, Type.String()])),
};

/** Everybody sees the same, and the page knows nothing of its visitor; it is made for each anew. */
export const fresh_page = {
  ...shared,
  ...({ method: 'GET', auth: 'public', cacheable: true, returns: shown } as const),
} as const;

/** The same, and kept by the response cache. */
export const public_page = { ...fresh_page, cache: { tag: () => lists_tag } } as const;

/** A form that everybody may send, as those to sign up and to log in. */
export const public_form = {
  ...shared,
  ...({ method: 'POST', auth: 'public', returns: answered } as const),
} as const;

/** Of the person who is logged in; others are sent to log in first. */
export const own_page = {
  ...shared,
  ...({ method: 'GET', auth: 'human', returns: { ...shown, 303: null } } as const),
} as const;
export const own_form = { ...public_form, auth: 'human' } as const;

/** Of an admin; to other people it does not exist. */
export const admin_page = { ...own_page, auth: 'admin' } as const;
export const admin_form = { ...public_form, auth: 'admin' } as const;

export type Outcome<Id extends OperationId> =
  | { readonly ok: true; readonly status: number; readonly body: Operations[Id]['returns'] }
  | { readonly ok: false; readonly status: number; readonly fault: FaultAnswer };

type Arguments<Id extends OperationId> =
  Record<never, never> extends Input<Id> ? [input?: Input<Id>] : [input: Input<Id>];

export interface Api {
  /** The answer of an operation, or its refusal as a value. */
  <Id extends OperationId>(id: Id, ...input: Arguments<Id>): Promise<Outcome<Id>>;
  /** The answer; a refusal is thrown, and becomes that of the page. */
  get<Id extends OperationId>(id: Id, ...input: Arguments<Id>): Promise<Operations[Id]['returns']>;
}

/** Thrown by `api.get`. */
class PageFault extends Error {
  constructor(readonly fault: Fault) {
    super(fault.message);
  }
}

/** The API as the visitor of the page may use it. */
export const apiOf = (
  ctx: Context<unknown, unknown, unknown>,
  { innerCall, public_url }: PageDeps,
): Api => {
  const token = ctx.caller.kind === 'human' ? readSession(ctx.header('cookie'), public_url) : '';
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
  const call = async <Id extends OperationId>(
    id: Id,
    ...[input = {}]: readonly AnyInput[]
  ): Promise<Outcome<Id>> => {
    const { method, target } = placeOf(id, input);
    const [path = '', query = ''] = target.split('?', 2);
    const parts = { method, path, query, body: input.body, headers };
    const answer = await innerCall(ctx as Context, parts);
    const { status, body } = answer;
    if (status < 400) return { ok: true, status, body: body as Operations[Id]['returns'] };
    return { ok: false, status, fault: readFault(answer) };
  };
  const get = async <Id extends OperationId>(id: Id, ...input: readonly AnyInput[]) => {
    const outcome = await call(id, ...input);
    if (!outcome.ok) throw new PageFault(asFault(outcome.fault));
    return outcome.body;
  };
  return Object.assign(call, { get }) as Api;
};

/** To another page, after a form has done what it was for: a reload does not do it again. */
export const goTo = (path: string, headers: Readonly<Record<string, string>> = {}): Reply => ({
  ...replyRaw('text/html', '', { ...headers, Location: path, 'Cache-Control': 'no-store' }),
  status: 303,
});

/** A path of this site and nothing else, from a form or an address. */
export const localPath = (given: string | undefined, fallback: string): string =>
  given !== undefined && /^\/(?![/\\])[\x21-\x7e]*$/.test(given) ? given : fallback;
