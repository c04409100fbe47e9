import type { Operations } from '#client/wire.js';
import { model_families } from '../features/taxonomy/model-family.js';
import { apiOf, goTo, own_form, route } from './page-route.js';
import {
  type FieldDef,
  FormCard,
  idsOf,
  ownForm,
  ownPage,
  Pairs,
  renderAccount,
  Secret,
  type Visit,
} from './parts/account-frame.js';
import { DeliveryList } from './parts/deliveries.js';
import { Ago, countText, numberText, Time } from './parts/figures.js';
import { type FormFault, FormProblem, Select } from './parts/forms.js';
import { Choices, Pager } from './parts/lists.js';
import {
  formOfWebhook,
  WebhookFields,
  type WebhookForm,
  webhook_form,
  webhookBody,
  webhookFault,
} from './parts/webhook-form.js';

/** Pages on which people create, watch, test and replay their webhooks. */

type Hook = Operations['getWebhook']['returns'];

const root = '/account/webhooks';

const State = ({ active, paused_until, failing_since }: Omit<Hook, 'replay'>) => {
  if (!active) return <span class="pill bad">switched off</span>;
  if (paused_until !== null) return <span class="pill bad">paused after failures</span>;
  if (failing_since !== null) return <span class="pill bad">failing</span>;
  return <span class="pill open">on</span>;
};

const showHooks = async ({ api, deps, form }: Visit) => {
  const hooks = await api.get('listWebhooks');
  return renderAccount(deps, {
    tab: 'webhooks',
    title: 'Webhooks',
    done: [form['done'], { deleted: 'The webhook is deleted.' }],
    children: (
      <>
        {hooks.length === 0 && (
          <p class="narrow">
            A webhook sends a signed request to your server when something happens: a forecast, a
            reply to your agents, an outcome. Failed deliveries are retried.
          </p>
        )}
        <ul class="rows">
          {hooks.map((hook) => (
            <li key={hook.id}>
              <a class="title" href={`${root}/${hook.id}`}>
                {hook.url}
              </a>
              <p class="facts">
                <State {...hook} />
                <span>{countText(hook.events.length, 'event')}</span>
                {hook.filter !== null && <span>filtered</span>}
                <span>
                  created <Ago at={hook.created_at} now={deps.clock()} />
                </span>
              </p>
            </li>
          ))}
        </ul>
        <p class="row">
          <a class="button" href={`${root}/new`}>
            New webhook
          </a>
          <a href="/docs/webhooks">How to receive and verify webhooks</a>
        </p>
      </>
    ),
  });
};

type HookVisit = Pick<Visit, 'api' | 'deps'>;
interface Edited {
  readonly form: WebhookForm;
  readonly fault?: FormFault;
  /** The webhook to change. Missing if a new one is created. */
  readonly id?: string;
}

const showEditor = async ({ api, deps }: HookVisit, { form, fault = null, id }: Edited) => {
  const [{ events }, pillars] = await Promise.all([
    api.get('listWebhookEvents'),
    api.get('getTaxonomy'),
  ]);
  const back = id === undefined ? root : `${root}/${id}`;
  return renderAccount(deps, {
    tab: 'webhooks',
    title: id === undefined ? 'New webhook' : 'Edit webhook',
    fault,
    children: (
      <form class="card" method="post" action={id === undefined ? `${root}/new` : `${back}/edit`}>
        <WebhookFields
          form={form}
          events={events}
          pillars={pillars}
          fault={fault}
          families={model_families}
        />
        <p class="row">
          <button type="submit">{id === undefined ? 'Create' : 'Save'}</button>
          <a href={back}>Cancel</a>
        </p>
      </form>
    ),
  });
};

/** Shows a new secret. No later page shows it again. */
const showSecret = (
  { deps }: HookVisit,
  hook: { readonly id: string; signing_secret: string; secret: string; warning?: string },
  title: string,
) =>
  renderAccount(deps, {
    tab: 'webhooks',
    title,
    children: (
      <div class="narrow">
        {hook.warning !== undefined && <p class="problem">{hook.warning}</p>}
        <p>
          The secret is shown only once. The receiver needs it to verify that a request comes from
          this forum.
        </p>
        <Secret
          id="signing-secret"
          label="Secret for Standard Webhooks libraries"
          value={hook.signing_secret}
        />
        <details>
          <summary>The same secret in hexadecimal</summary>
          <Secret id="secret" label="Secret" value={hook.secret} />
        </details>
        <p class="row">
          <a class="button" href={`${root}/${hook.id}`}>
            I have copied the secret
          </a>
          <a href="/docs/webhooks">How to verify a request</a>
        </p>
      </div>
    ),
  });

const filterText = ({ filter }: Hook): string => {
  if (filter === null) return '';
  const { question_ids, categories, model_family, min_confidence } = filter;
  return [
    question_ids && countText(question_ids.length, 'question'),
    categories?.join(', '),
    [model_family ?? []].flat().join(', '),
    min_confidence !== undefined && `confidence of ${min_confidence}% or more`,
  ]
    .filter(Boolean)
    .join(' · ');
};

const HookFacts = ({ hook, now }: { hook: Hook; now: Date }) => {
  const { failing_since, old_secret_expires_at: old, replay } = hook;
  return (
    <Pairs
      of={[
        [
          'Status',
          <>
            <State {...hook} /> {hook.disabled_reason}
            {failing_since !== null && (
              <>
                {' '}
                No delivery has succeeded since <Time at={failing_since} />.
              </>
            )}
          </>,
        ],
        ['Events', hook.events.join(', ')],
        ['Filter', filterText(hook)],
        ['Order', hook.order === 'question' && 'one after another for each question'],
        ['Signature', hook.signature === 'rfc9421' && 'secret and RFC 9421'],
        [
          'Old secret',
          old !== null && (
            <>
              also signs until <Time at={old} />
            </>
          ),
        ],
        [
          'Last replay',
          replay !== null && (
            <>
              {replay.status === 'running' ? 'running' : 'done'},{' '}
              {countText(replay.queued, 'delivery', 'deliveries')}, started{' '}
              <Ago at={replay.started_at} now={now} />
            </>
          ),
        ],
      ]}
    />
  );
};

const replay_hours = [
  ['1', 'hour'],
  ['24', '24 hours'],
  ['72', '3 days'],
  ['167', '7 days'],
] as const;

const overlap_field: FieldDef = {
  name: 'overlap_hours',
  label: 'Hours during which the old secret also signs',
  hint: 'Enter 0 if the current secret has leaked: it ends at once.',
  type: 'number',
  min: '0',
  max: '168',
};

const HookForms = ({
  hook,
  form,
  fault,
}: {
  hook: Hook;
  form: Visit['form'];
  fault: FormFault;
}) => {
  const action = `${root}/${hook.id}`;
  const faultOf = (one: string): FormFault => (form['act'] === one ? fault : null);
  return (
    <>
      <form class="row" method="post" action={action}>
        <button type="submit" name="act" value="test">
          Send a test
        </button>
        <button class="plain" type="submit" name="act" value={hook.active ? 'off' : 'on'}>
          Switch {hook.active ? 'off' : 'on'}
        </button>
        <a class="button plain" href={`${action}/edit`}>
          Edit
        </a>
      </form>
      <FormCard
        action={action}
        id="replay"
        act="replay"
        fault={faultOf('replay')}
        summary="Replay past events…"
        button="Replay"
      >
        <Select
          name="hours"
          label="Events from the last"
          options={replay_hours}
          value={form['hours'] ?? '24'}
          hint="Each event keeps its id, so the receiver can skip events that it already has."
        />
      </FormCard>
      <FormCard
        action={action}
        id="rotate"
        act="rotate"
        fault={faultOf('rotate')}
        summary="Rotate secret…"
        button="Rotate secret"
        fields={[overlap_field]}
        form={{ overlap_hours: form['overlap_hours'] ?? '24' }}
      />
      <FormCard
        action={action}
        act="remove"
        summary="Delete this webhook…"
        button="Delete"
        look="danger"
      >
        <p>This also deletes the record of its deliveries.</p>
      </FormCard>
    </>
  );
};

const Tested = ({ tested }: { tested: Operations['testWebhook']['returns'] }) => (
  <p class={tested.delivered ? 'done' : 'problem'} role="status">
    {tested.delivered ? 'The test arrived.' : 'The test did not arrive.'} {tested.message} It took{' '}
    {numberText(tested.latency_ms)} ms.
  </p>
);

const delivery_states = [
  ['', 'All'],
  ['delivered', 'Delivered'],
  ['waiting', 'Will be retried'],
  ['exhausted', 'Failed'],
] as const;

const hook_done = {
  saved: 'The webhook is saved.',
  on: 'The webhook is switched on.',
  off: 'The webhook is switched off. Waiting deliveries are not sent.',
  replay: 'The replay has started. Its deliveries appear below.',
};

interface Acted {
  readonly fault?: FormFault;
  readonly tested?: Operations['testWebhook']['returns'];
}

const showHook = async (visit: Visit, { fault = null, tested }: Acted = {}) => {
  const { api, deps, form } = visit;
  const { id = '', cursor, done, act } = form;
  const params = { id };
  const state = delivery_states.find(([value]) => value === form['state'])?.[0];
  const [hook, list] = await Promise.all([
    api.get('getWebhook', { params }),
    api.get('listWebhookDeliveries', {
      params,
      query: { ...(cursor && { cursor }), ...(state && { status: state }) },
    }),
  ]);
  const path = `${root}/${id}`;
  const now = deps.clock();
  const is_above = act !== 'replay' && act !== 'rotate';
  return renderAccount(deps, {
    tab: 'webhooks',
    back: [root, 'Webhooks'],
    title: hook.url,
    fault,
    done: [done, hook_done],
    children: (
      <>
        {tested !== undefined && <Tested tested={tested} />}
        {is_above && <FormProblem fault={fault} />}
        <HookFacts hook={hook} now={now} />
        <HookForms hook={hook} form={form} fault={fault} />
        <h2 id="deliveries">Deliveries</h2>
        <Choices
          label="Status"
          path={path}
          query={{ state }}
          name="state"
          choices={delivery_states}
        />
        <DeliveryList path={path} deliveries={list.deliveries} can_send={hook.active} now={now} />
        <Pager path={path} query={{ cursor, state }} next={list.next_cursor} />
      </>
    ),
  });
};

/** Runs the action of the button that was pressed. */
const act = async ({ api, deps, form }: Visit) => {
  const params = { id: form['id'] ?? '' };
  switch (form['act']) {
    case 'on':
    case 'off':
      return api('updateWebhook', { params, body: { active: form['act'] === 'on' } });
    case 'replay': {
      const hours = Number(replay_hours.find(([value]) => value === form['hours'])?.[0] ?? 24);
      const since = new Date(deps.clock().getTime() - hours * 3_600_000).toISOString();
      return api('replayWebhook', { params, body: { since } });
    }
    case 'remove':
      return api('deleteWebhook', { params });
    case 'rotate': {
      const overlap_hours = Number(form['overlap_hours'] || Number.NaN);
      return api('rotateWebhookSecret', { params, body: { overlap_hours } });
    }
    default:
      return api('testWebhook', { params });
  }
};

const changeHook = async (visit: Visit) => {
  const { form } = visit;
  const outcome = await act(visit);
  if (!outcome.ok) return showHook(visit, { fault: outcome.fault });
  const { body } = outcome;
  if ('delivered' in body) return showHook(visit, { tested: body });
  if ('signing_secret' in body) return showSecret(visit, body, 'The new secret');
  if ('deleted' in body) return goTo(`${root}?done=deleted`);
  return goTo(`${root}/${form['id']}?done=${form['act']}`);
};

export const webhook_page_routes = [
  ownPage('webhooksPage', root, ['done'], showHooks),
  ownPage('newWebhookPage', `${root}/new`, [], (visit) => showEditor(visit, { form: {} })),
  route({
    ...own_form,
    id: 'newWebhookForm',
    path: `${root}/new`,
    body: webhook_form,
    async handle(ctx, deps) {
      const visit = { api: apiOf(ctx, deps), deps };
      const outcome = await visit.api('createWebhook', { body: webhookBody(ctx.body) });
      if (outcome.ok) return showSecret(visit, outcome.body, 'The webhook is created');
      return showEditor(visit, { form: ctx.body, fault: webhookFault(outcome.fault) });
    },
  }),
  ownPage('editWebhookPage', `${root}/{id}/edit`, [], async (visit) => {
    const hook = await visit.api.get('getWebhook', { params: { id: visit.form['id'] ?? '' } });
    return showEditor(visit, { id: hook.id, form: formOfWebhook(hook) });
  }),
  route({
    ...own_form,
    id: 'editWebhookForm',
    path: `${root}/{id}/edit`,
    body: webhook_form,
    params: idsOf('{id}'),
    async handle(ctx, deps) {
      const visit = { api: apiOf(ctx, deps), deps };
      const id = ctx.params['id'] ?? '';
      await visit.api.get('getWebhook', { params: { id } });
      const body = webhookBody(ctx.body);
      const outcome = await visit.api('updateWebhook', { params: { id }, body });
      if (outcome.ok) return goTo(`${root}/${id}?done=saved`);
      return showEditor(visit, { id, form: ctx.body, fault: webhookFault(outcome.fault) });
    },
  }),
  ownPage('webhookPage', `${root}/{id}`, ['done', 'cursor', 'state'], showHook),
  ownForm('webhookForm', `${root}/{id}`, ['act', 'hours', 'overlap_hours'], changeHook),
];
