import { Type } from '@sinclair/typebox';
import { uuid_schema } from '../http/openapi.js';
import { type Api, apiOf, goTo, own_form, own_page, type PageDeps, route } from './page-route.js';
import { renderAccount } from './parts/account-frame.js';
import { attemptText, DeliveryState, RedeliverForm } from './parts/deliveries.js';
import { Time } from './parts/figures.js';
import { Done, type FormFault, FormProblem, inWords } from './parts/forms.js';

/** One delivery of a webhook, with every attempt and the beginning of what came back. */

const path = '/account/webhooks/{id}/deliveries/{did}';
const params = Type.Object({ id: uuid_schema, did: uuid_schema });

interface Shown {
  readonly id: string;
  readonly did: string;
  readonly done?: string | undefined;
  readonly fault?: FormFault;
}

const showDelivery = async (api: Api, deps: PageDeps, { id, did, done, fault = null }: Shown) => {
  const one = await api.get('getWebhookDelivery', { params: { id, did } });
  const title = one.event ?? 'Events left out';
  return renderAccount(deps, {
    ...{ tab: 'webhooks', title, status: fault?.status ?? 200 },
    children: (
      <>
        <p>
          <a href={`/account/webhooks/${id}#deliveries`}>All deliveries</a>
        </p>
        <h1 class="any">{title}</h1>
        <Done
          word={done}
          texts={{
            again: 'It is sent again, with all its attempts before it. Load the page for news.',
          }}
        />
        <FormProblem fault={fault} />
        <dl class="pairs">
          <dt>State</dt>
          <dd>
            <DeliveryState status={one.status} />
          </dd>
          <dt>Event</dt>
          <dd>
            <code>{one.event_id}</code>, number {one.offset} of the log
          </dd>
          <dt>Made</dt>
          <dd>
            <Time at={one.created_at} />
          </dd>
          {one.next_attempt_at !== null && (
            <>
              <dt>Next attempt</dt>
              <dd>
                <Time at={one.next_attempt_at} />
              </dd>
            </>
          )}
        </dl>
        {one.status !== 'gap' && (
          <RedeliverForm action={`/account/webhooks/${id}/deliveries/${did}`} label="Send again" />
        )}
        <h2>Attempts</h2>
        {one.history.length === 0 && <p class="soft">None yet.</p>}
        <ol class="rows">
          {one.history.map((attempt, n) => (
            <li key={`${attempt.at} ${attempt.attempt}`}>
              <p>
                <strong>{n + 1}.</strong> {attemptText(attempt)}
              </p>
              <p class="facts">
                <Time at={attempt.at} />
              </p>
              {attempt.answer && (
                <details>
                  <summary>The answer</summary>
                  <pre>
                    <code>{attempt.answer}</code>
                  </pre>
                </details>
              )}
            </li>
          ))}
        </ol>
      </>
    ),
  });
};

const deliveryPage = route({
  ...own_page,
  id: 'deliveryPage',
  path,
  params,
  query: Type.Object({ done: Type.Optional(Type.String({ maxLength: 20 })) }),
  handle: (ctx, deps) => showDelivery(apiOf(ctx, deps), deps, { ...ctx.query, ...ctx.params }),
});

const deliveryForm = route({
  ...own_form,
  id: 'deliveryForm',
  path,
  params,
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { id, did } = ctx.params;
    const outcome = await api('redeliverWebhook', { params: { id, did } });
    if (outcome.ok) return goTo(`/account/webhooks/${id}/deliveries/${did}?done=again`);
    const fault = inWords(outcome.fault, {
      WEBHOOK_INACTIVE: 'The webhook is switched off; switch it on first.',
    });
    return showDelivery(api, deps, { id, did, fault });
  },
});

export const delivery_page_routes = [deliveryPage, deliveryForm];
