import { type TSchema, Type } from '@sinclair/typebox';
import { type AnyInput, placeOf } from '#client/calls.js';
import type { Input, OperationId } from '#client/types.js';
import type { Operations } from '#client/wire.js';
import type { DocsParts } from '../features/docs/site.js';
import { lists_tag } from '../features/questions/schema.js';
import { readSession } from '../http/call.js';
import type { Deps } from '../http/deps.js';
import { asFault, type FaultAnswer, type InnerCall, readFault } from '../http/inner-call.js';
import { type Context, type Reply, replyRaw, routeFor } from '../http/route.js';
import type { Fault } from '../kit/fault.js';
import type { PngParts } from '../kit/svg-png.js';

/**
 * Definitions shared by all page routes. A page is a client of the API in the same process: it
 * reads and changes data only through `apiOf`.
 */

export interface PageDeps extends Deps, PngParts, Pick<DocsParts, 'reference'> {
  readonly innerCall: InnerCall;
}

const anyRoute = routeFor<PageDeps>();

/** Defines a page route. If `api.get` throws a fault, the page responds with that fault. */
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
/** A form answers with a redirect (303). If it is refused, its page shows the problems. */
const refused = [400, 401, 403, 404, 409, 422, 429, 503];
const answered = {
  ...shown,
  303: null,
  ...Object.fromEntries(refused.map((status) => [status, Type.String()])),
};

/** A page that does not depend on its visitor. It is rendered for each request. */
export const fresh_page = {
  ...shared,
  ...({ method: 'GET', auth: 'public', cacheable: true, returns: shown } as const),
} as const;

/** Like `fresh_page`, but stored in the response cache. */
export const public_page = { ...fresh_page, cache: { tag: () => lists_tag } } as const;

/** A form that anyone may send, such as the forms to sign up and to log in. */
export const public_form = {
  ...shared,
  ...({ method: 'POST', auth: 'public', returns: answered } as const),
} as const;

/** A page for a person who is logged in. Other visitors are sent to log in first. */
export const own_page = {
  ...shared,
  ...({ method: 'GET', auth: 'human', returns: { ...shown, 303: null } } as const),
} as const;
export const own_form = { ...public_form, auth: 'human' } as const;

/** A page for admins. Other people get "page not found". */
export const admin_page = { ...own_page, auth: 'admin' } as const;
export const admin_form = { ...public_form, auth: 'admin' } as const;

export type Outcome<Id extends OperationId> =
  | { readonly ok: true; readonly status: number; readonly body: Operations[Id]['returns'] }
  | { readonly ok: false; readonly status: number; readonly fault: FaultAnswer };

type Arguments<Id extends OperationId> =
  Record<never, never> extends Input<Id> ? [input?: Input<Id>] : [input: Input<Id>];

export interface Api {
  /** Calls an operation and returns its response or its fault. */
  <Id extends OperationId>(id: Id, ...input: Arguments<Id>): Promise<Outcome<Id>>;
  /** Returns the response of an operation. A fault is thrown and becomes the page's response. */
  get<Id extends OperationId>(id: Id, ...input: Arguments<Id>): Promise<Operations[Id]['returns']>;
}

/** The error that `api.get` throws. */
class PageFault extends Error {
  constructor(readonly fault: Fault) {
    super(fault.message);
  }
}

/** Returns a client of the API with the rights of the page's visitor. */
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

/** Redirects after a successful form, so that a reload does not send the form again. */
export const goTo = (path: string, headers: Readonly<Record<string, string>> = {}): Reply => ({
  ...replyRaw('text/html', '', { ...headers, Location: path, 'Cache-Control': 'no-store' }),
  status: 303,
});

/** Returns the given path if it is a path of this site, otherwise the fallback. */
export const localPath = (given: string | undefined, fallback: string): string =>
  given !== undefined && /^\/(?![/\\])[\x21-\x7e]*$/.test(given) ? given : fallback;
