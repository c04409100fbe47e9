import { Type } from '@sinclair/typebox';
import { routeFor } from '../http/route.js';
import { apiOf, fresh_page, type PageDeps, route } from './page-route.js';
import { renderEntry } from './parts/account-frame.js';
import { faultText } from './parts/forms.js';

/**
 * The page behind the unsubscribe links of e-mails. Opening it changes nothing, because mail
 * scanners open links too. Its buttons, and the button of a mail client (RFC 8058), send a POST.
 */

const shared = {
  path: '/unsubscribe/{token}',
  params: Type.Object({ token: Type.String({ maxLength: 100 }) }),
} as const;

const unsubscribePage = route({
  ...fresh_page,
  ...shared,
  id: 'unsubscribePage',
  cacheable: false,
  handle: (ctx, deps) => {
    const action = `/unsubscribe/${ctx.params.token}`;
    return renderEntry(deps, {
      title: 'Unsubscribe',
      children: (
        <>
          <form class="card" method="post" action={action}>
            <p>Stop e-mails of this kind?</p>
            <button type="submit">Unsubscribe</button>
          </form>
          <form class="card" method="post" action={`${action}?all=true`}>
            <p>Stop all digests and alerts? E-mails about your log-in still come.</p>
            <button class="plain" type="submit">
              Unsubscribe from all
            </button>
          </form>
        </>
      ),
    });
  },
});

/** Not a page route: mail clients send the form in one of two encodings, and from no page. */
const unsubscribeForm = routeFor<PageDeps>()({
  ...shared,
  id: 'unsubscribeForm',
  method: 'POST',
  summary: 'Ends e-mails, without logging in.',
  tag: 'pages',
  auth: 'public',
  documented: false,
  produces: 'text/html',
  query: Type.Object({ all: Type.Optional(Type.Boolean()) }),
  returns: { 200: Type.String(), 404: Type.String(), 503: Type.String() },
  async handle(ctx, deps) {
    const outcome = await apiOf(ctx, deps)('unsubscribe', { params: ctx.params, query: ctx.query });
    return renderEntry(deps, {
      title: outcome.ok ? 'Unsubscribed' : 'Unsubscribe',
      ...(outcome.ok ? {} : { fault: outcome.fault }),
      children: (
        <>
          <p role="status">{outcome.ok ? outcome.body.message : faultText(outcome.fault)}</p>
          <p>
            <a href="/account/settings#mail">Choose which e-mails you get</a>
          </p>
        </>
      ),
    });
  },
});

export const unsubscribe_routes = [unsubscribePage, unsubscribeForm];
