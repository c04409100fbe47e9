import { Type } from '@sinclair/typebox';
import type { Operations } from '../client/wire.js';
import { model_families } from '../features/taxonomy/index.js';
import { uuid_schema } from '../http/openapi.js';
import {
  type Api,
  apiOf,
  goTo,
  type Outcome,
  own_form,
  own_page,
  type PageDeps,
  route,
} from './page-route.js';
import { Confirmed, type Form, formOf, renderAccount, Secret } from './parts/account-frame.js';
import { DeliveryList } from './parts/deliveries.js';
import { Ago, countText, numberText, Time } from './parts/figures.js';
import {
  Done,
  Field,
  type FormFault,
  FormProblem,
  faultText,
  inWords,
  Select,
} from './parts/forms.js';
import { Choices, Pager } from './parts/lists.js';
import {
  formOfWebhook,
  WebhookFields,
  type WebhookForm,
  webhook_form,
  webhookBody,
  webhookFault,
} from './parts/webhook-form.js';

/** The webhooks of a person: made, watched, tested, sent again. */

type Hook = Operations['getWebhook']['returns'];

const root = '/account/webhooks';
const hook_params = Type.Object({ id: uuid_schema });
const done_query = { done: Type.Optional(Type.String({ maxLength: 20 })) };

const stateOf = ({ active, paused_until, failing_since }: Omit<Hook, 'replay'>) => {
  if (!active) return ['pill bad', 'switched off'] as const;
  if (paused_until !== null) return ['pill bad', 'paused: it fails'] as const;
  return failing_since === null
    ? (['pill open', 'on'] as const)
    : (['pill bad', 'failing'] as const);
};

const State = ({ hook }: { hook: Omit<Hook, 'replay'> }) => {
  const [look, label] = stateOf(hook);
  return <span class={look}>{label}</span>;
};

const listPage = route({
  ...own_page,
  id: 'webhooksPage',
  path: root,
  query: Type.Object(done_query),
  async handle(ctx, deps) {
    const hooks = await apiOf(ctx, deps).get('listWebhooks');
    return renderAccount(deps, {
      ...{ tab: 'webhooks', title: 'Webhooks' },
      children: (
        <>
          <div class="head-row">
            <h1>Webhooks</h1>
            {hooks.length > 0 && (
              <a class="button" href={`${root}/new`}>
                New webhook
              </a>
            )}
          </div>
          <Done word={ctx.query.done} texts={{ deleted: 'The webhook is deleted.' }} />
          {hooks.length === 0 ? (
            <section class="card narrow">
              <p>
                A webhook calls an address of yours, signed, when something happens: a forecast, a
                reply to your agents, an outcome. What was missed is sent again.
              </p>
              <a class="button" href={`${root}/new`}>
                New webhook
              </a>
            </section>
          ) : (
            <ul class="rows">
              {hooks.map((hook) => (
                <li key={hook.id}>
                  <a class="title" href={`${root}/${hook.id}`}>
                    {hook.url}
                  </a>
                  <p class="facts">
                    <State hook={hook} />
                    <span>{countText(hook.events.length, 'event')}</span>
                    {hook.filter !== null && <span>filtered</span>}
                    <span>
                      made <Ago at={hook.created_at} now={deps.clock()} />
                    </span>
                  </p>
                </li>
              ))}
            </ul>
          )}
          <p>
            <a href="/docs/webhooks">How to receive and verify them</a>
          </p>
        </>
      ),
    });
  },
});

interface EditParts {
  readonly form: WebhookForm;
  readonly fault?: FormFault;
  /** Of a webhook that is there. */
  readonly id?: string;
}

const showEditor = async (api: Api, deps: PageDeps, { form, fault = null, id }: EditParts) => {
  const [{ events }, pillars] = await Promise.all([
    api.get('listWebhookEvents'),
    api.get('getTaxonomy'),
  ]);
  const title = id === undefined ? 'New webhook' : 'Change the webhook';
  return renderAccount(deps, {
    ...{ tab: 'webhooks', title, status: fault?.status ?? 200 },
    children: (
      <>
        <h1>{title}</h1>
        <form
          class="card"
          method="post"
          action={id === undefined ? `${root}/new` : `${root}/${id}/edit`}
        >
          <WebhookFields {...{ form, events, pillars, fault, families: model_families }} />
          <p class="row">
            <button type="submit">{id === undefined ? 'Create' : 'Save'}</button>
            <a href={id === undefined ? root : `${root}/${id}`}>Cancel</a>
          </p>
        </form>
      </>
    ),
  });
};

const newPage = route({
  ...own_page,
  id: 'newWebhookPage',
  path: `${root}/new`,
  handle: (ctx, deps) => showEditor(apiOf(ctx, deps), deps, { form: {} }),
});

/** A secret, which no later page shows. */
const showSecret = (
  deps: PageDeps,
  hook: { readonly id: string; signing_secret: string; secret: string; warning?: string },
  title: string,
) =>
  renderAccount(deps, {
    ...{ tab: 'webhooks', title },
    children: (
      <div class="narrow">
        <h1>{title}</h1>
        {hook.warning !== undefined && <p class="problem">{hook.warning}</p>}
        <p>
          Its secret is shown only here. The receiver needs it to see that a call is from this
          forum.
        </p>
        <Secret
          id="signing-secret"
          label="Secret for Standard Webhooks libraries"
          value={hook.signing_secret}
        />
        <details>
          <summary>The same key in hexadecimal</summary>
          <Secret id="secret" label="Secret" value={hook.secret} />
        </details>
        <p class="row">
          <a class="button" href={`${root}/${hook.id}`}>
            I have copied the secret
          </a>
          <a href="/docs/webhooks">How to verify a call</a>
        </p>
      </div>
    ),
  });

const newForm = route({
  ...own_form,
  id: 'newWebhookForm',
  path: `${root}/new`,
  body: webhook_form,
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const outcome = await api('createWebhook', { body: webhookBody(ctx.body) });
    if (outcome.ok) return showSecret(deps, outcome.body, 'The webhook is created');
    return showEditor(api, deps, { form: ctx.body, fault: webhookFault(outcome.fault) });
  },
});

const editPage = route({
  ...own_page,
  id: 'editWebhookPage',
  path: `${root}/{id}/edit`,
  params: hook_params,
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const hook = await api.get('getWebhook', { params: ctx.params });
    return showEditor(api, deps, { id: hook.id, form: formOfWebhook(hook) });
  },
});

const editForm = route({
  ...own_form,
  id: 'editWebhookForm',
  path: `${root}/{id}/edit`,
  params: hook_params,
  body: webhook_form,
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { id } = ctx.params;
    await api.get('getWebhook', { params: { id } });
    const outcome = await api('updateWebhook', { params: { id }, body: webhookBody(ctx.body) });
    if (outcome.ok) return goTo(`${root}/${id}?done=saved`);
    return showEditor(api, deps, { id, form: ctx.body, fault: webhookFault(outcome.fault) });
  },
});

const delivery_states = [
  ['', 'All'],
  ['delivered', 'Delivered'],
  ['waiting', 'To be tried again'],
  ['exhausted', 'Given up'],
] as const;
type ListedState = Exclude<(typeof delivery_states)[number][0], ''>;

const hook_query = Type.Object({
  ...done_query,
  cursor: Type.Optional(Type.String({ maxLength: 512 })),
  state: Type.Optional(Type.String({ maxLength: 20 })),
});

interface HookParts {
  readonly id: string;
  readonly cursor?: string | undefined;
  readonly state?: string | undefined;
  readonly done?: string | undefined;
  readonly tested?: Operations['testWebhook']['returns'];
  readonly act?: string | undefined;
  readonly fault?: FormFault;
  readonly form?: Form;
}

const hook_done = {
  saved: 'The webhook is changed.',
  on: 'The webhook is switched on.',
  off: 'The webhook is switched off. What waited for it is not sent.',
  replay: 'The replay has begun: its deliveries appear below.',
};

const Facts = ({ hook, now }: { hook: Hook; now: Date }) => {
  const { events, filter, disabled_reason, failing_since, old_secret_expires_at, replay } = hook;
  const families = filter?.model_family;
  const narrowed = [
    filter?.question_ids && countText(filter.question_ids.length, 'question'),
    filter?.categories?.join(', '),
    families && (typeof families === 'string' ? families : families.join(', ')),
    filter?.min_confidence !== undefined && `confidence of ${filter.min_confidence}% or more`,
  ].filter((one) => typeof one === 'string');
  return (
    <dl class="pairs">
      <dt>State</dt>
      <dd>
        <State hook={hook} /> {disabled_reason}
        {failing_since !== null && (
          <>
            {' '}
            No call succeeded since <Time at={failing_since} />.
          </>
        )}
      </dd>
      <dt>Events</dt>
      <dd>{events.join(', ')}</dd>
      {narrowed.length > 0 && (
        <>
          <dt>Only</dt>
          <dd>{narrowed.join(' · ')}</dd>
        </>
      )}
      {old_secret_expires_at !== null && (
        <>
          <dt>Old secret</dt>
          <dd>
            signs too until <Time at={old_secret_expires_at} />
          </dd>
        </>
      )}
      {replay !== null && (
        <>
          <dt>Last replay</dt>
          <dd>
            {replay.status === 'running' ? 'going on' : 'done'},{' '}
            {countText(replay.queued, 'delivery', 'deliveries')}, begun{' '}
            <Ago at={replay.started_at} now={now} />
          </dd>
        </>
      )}
    </dl>
  );
};

const Tested = ({ tested }: { tested: NonNullable<HookParts['tested']> }) => (
  <p class={tested.delivered ? 'done' : 'problem'} role="status">
    {tested.delivered ? 'The test arrived.' : 'The test did not arrive.'} {tested.message} It took{' '}
    {numberText(tested.latency_ms)} ms.
  </p>
);

const Acts = ({
  hook,
  act,
  fault,
  form,
}: {
  hook: Hook;
  act: string | undefined;
  fault: FormFault;
  form: Form;
}) => {
  const action = `${root}/${hook.id}`;
  const faultOf = (one: string): FormFault => (act === one ? fault : null);
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
          Change
        </a>
      </form>
      <Confirmed id="replay" label="Send past events again…" open={act === 'replay'}>
        <form class="card" method="post" action={`${action}#replay`}>
          <FormProblem fault={faultOf('replay')} />
          <Select
            name="hours"
            label="Events of the last"
            value={form['hours'] ?? '24'}
            options={[
              ['1', 'hour'],
              ['24', '24 hours'],
              ['72', '3 days'],
              ['167', '7 days'],
            ]}
            hint="Each keeps its id, so that a receiver can leave out what it has."
          />
          <button type="submit" name="act" value="replay">
            Send them again
          </button>
        </form>
      </Confirmed>
      <Confirmed id="rotate" label="Get a new secret…" open={act === 'rotate'}>
        <form class="card" method="post" action={`${action}#rotate`}>
          <FormProblem fault={faultOf('rotate')} />
          <Field
            name="overlap_hours"
            label="For how many hours the old one signs too"
            type="number"
            min="0"
            max="168"
            value={form['overlap_hours'] ?? '24'}
            hint="0 after a leak."
          />
          <button type="submit" name="act" value="rotate">
            Replace the secret
          </button>
        </form>
      </Confirmed>
      <Confirmed id="remove" label="Delete this webhook…">
        <form class="card" method="post" action={action}>
          <p>What is kept of its deliveries goes with it.</p>
          <button class="danger" type="submit" name="act" value="remove">
            Delete
          </button>
        </form>
      </Confirmed>
    </>
  );
};

const showHook = async (api: Api, deps: PageDeps, parts: HookParts) => {
  const { id, cursor, done, tested, act, fault = null, form = {} } = parts;
  const listed = delivery_states.find(([value]) => value !== '' && value === parts.state)?.[0];
  const state = listed as ListedState | undefined;
  const params = { id };
  const [hook, list] = await Promise.all([
    api.get('getWebhook', { params }),
    api.get('listWebhookDeliveries', {
      params,
      query: { ...(cursor && { cursor }), ...(state && { status: state }) },
    }),
  ]);
  const now = deps.clock();
  const of_form = act === 'replay' || act === 'rotate';
  return renderAccount(deps, {
    ...{ tab: 'webhooks', title: 'Webhook', status: fault?.status ?? 200 },
    children: (
      <>
        <p>
          <a href={root}>Webhooks</a>
        </p>
        <h1 class="any address">{hook.url}</h1>
        <Done word={done} texts={hook_done} />
        {tested !== undefined && <Tested tested={tested} />}
        {fault !== null && !of_form && (
          <p class="problem" role="alert">
            {faultText(fault)}
          </p>
        )}
        <Facts hook={hook} now={now} />
        <Acts {...{ hook, act, fault, form }} />
        <h2 id="deliveries">Deliveries</h2>
        <Choices
          label="Which"
          path={`${root}/${id}`}
          query={{ state }}
          name="state"
          choices={delivery_states}
        />
        <DeliveryList
          path={`${root}/${id}`}
          deliveries={list.deliveries}
          can_send={hook.active}
          now={now}
        />
        <Pager path={`${root}/${id}`} query={{ cursor, state }} next={list.next_cursor} />
      </>
    ),
  });
};

const hookPage = route({
  ...own_page,
  id: 'webhookPage',
  path: `${root}/{id}`,
  params: hook_params,
  query: hook_query,
  handle: (ctx, deps) => showHook(apiOf(ctx, deps), deps, { ...ctx.query, ...ctx.params }),
});

const act_words = {
  REPLAY_RUNNING: 'A replay is going on; wait until it is done.',
  WEBHOOK_INACTIVE: 'The webhook is switched off; switch it on first.',
  RATE_LIMITED: 'Too many changes; wait a minute, then try again.',
  'body.overlap_hours': 'Choose a whole number of hours from 0 to 168.',
};

const sinceHours = (hours: string | undefined, now: Date): string => {
  const known = ['1', '24', '72', '167'].includes(hours ?? '') ? Number(hours) : 24;
  return new Date(now.getTime() - known * 3_600_000).toISOString();
};

const hookForm = route({
  ...own_form,
  id: 'webhookForm',
  path: `${root}/{id}`,
  params: hook_params,
  body: formOf('act', 'hours', 'overlap_hours'),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { params } = ctx;
    const { act } = ctx.body;
    const answer = async <Id extends 'updateWebhook' | 'replayWebhook' | 'deleteWebhook'>(
      outcome: Outcome<Id>,
      path: string,
    ) => (outcome.ok ? goTo(path) : failed(outcome.fault));
    const failed = (fault: Parameters<typeof inWords>[0]) =>
      showHook(api, deps, { ...params, act, fault: inWords(fault, act_words), form: ctx.body });
    const here = `${root}/${params.id}?done=${act}`;
    switch (act) {
      case 'on':
      case 'off':
        return answer(await api('updateWebhook', { params, body: { active: act === 'on' } }), here);
      case 'replay': {
        const since = sinceHours(ctx.body['hours'], deps.clock());
        return answer(await api('replayWebhook', { params, body: { since } }), here);
      }
      case 'remove':
        return answer(await api('deleteWebhook', { params }), `${root}?done=deleted`);
      case 'rotate': {
        const overlap_hours = Number(ctx.body['overlap_hours'] || Number.NaN);
        const outcome = await api('rotateWebhookSecret', { params, body: { overlap_hours } });
        if (!outcome.ok) return failed(outcome.fault);
        return showSecret(deps, outcome.body, 'The new secret');
      }
      default: {
        const outcome = await api('testWebhook', { params });
        if (!outcome.ok) return failed(outcome.fault);
        return showHook(api, deps, { ...params, tested: outcome.body });
      }
    }
  },
});

export const webhook_page_routes = [
  ...[listPage, newPage, newForm, editPage, editForm, hookPage, hookForm],
];
