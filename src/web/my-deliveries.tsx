import { goTo } from './page-route.js';
import { ownForm, ownPage, Pairs, renderAccount, type Visit } from './parts/account-frame.js';
import { attemptText, DeliveryState, RedeliverForm } from './parts/deliveries.js';
import { Time } from './parts/figures.js';
import { type FormFault, FormProblem } from './parts/forms.js';

/** One delivery of a webhook, with all attempts and the start of each response. */

const path = '/account/webhooks/{id}/deliveries/{did}';
const delivery_done = { again: 'The delivery is queued again. Reload the page to see the result.' };

const showDelivery = async ({ api, deps, form }: Visit, fault: FormFault = null) => {
  const { id = '', did = '', done } = form;
  const one = await api.get('getWebhookDelivery', { params: { id, did } });
  const { status, event_id, created_at, next_attempt_at: next } = one;
  return renderAccount(deps, {
    tab: 'webhooks',
    title: one.event ?? 'Events skipped',
    fault,
    back: [`/account/webhooks/${id}#deliveries`, 'All deliveries'],
    done: [done, delivery_done],
    children: (
      <>
        <FormProblem fault={fault} />
        <Pairs
          of={[
            ['Status', <DeliveryState status={status} />],
            ['Event', `${event_id}, offset ${one.offset} in the log`],
            ['Created', <Time at={created_at} />],
            ['Next attempt', next !== null && <Time at={next} />],
          ]}
        />
        {status !== 'gap' && (
          <RedeliverForm action={`/account/webhooks/${id}/deliveries/${did}`} label="Send again" />
        )}
        <h2>Attempts</h2>
        {one.history.length === 0 && <p class="soft">No attempts yet.</p>}
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
                  <summary>Response</summary>
                  <pre class="wrap">
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

export const delivery_page_routes = [
  ownPage('deliveryPage', path, ['done'], showDelivery),
  ownForm('deliveryForm', path, [], async (visit) => {
    const { id = '', did = '' } = visit.form;
    const outcome = await visit.api('redeliverWebhook', { params: { id, did } });
    if (!outcome.ok) return showDelivery(visit, outcome.fault);
    return goTo(`/account/webhooks/${id}/deliveries/${did}?done=again`);
  }),
];
