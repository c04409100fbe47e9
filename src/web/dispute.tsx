import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { question_faults, question_params } from '../features/questions/schema.js';
import { window_ms } from '../features/resolution/rules.js';
import { uuid_schema } from '../http/schemas.js';
import { renderPage } from './page.js';
import { type Api, apiOf, goTo, own_form, own_page, type PageDeps, route } from './page-route.js';
import { Time } from './parts/figures.js';
import { Done, type FormFault, FormProblem, Select, TextArea } from './parts/forms.js';
import { outcomeText } from './parts/question-row.js';

/** The page on which a person disputes a resolution for an agent, or withdraws such a dispute. */

type Question = Operations['getQuestion']['returns']['question'];
type Dispute = Operations['listDisputes']['returns']['disputes'][number];

/** The visitor's agents that predicted on a question. Suspended agents dispute nothing. */
const readMine = async (api: Api, question_id: string) => {
  const query = { predicted_on: question_id, limit: 100 };
  const { agents } = await api.get('listMyAgents', { query });
  return agents.filter(({ suspended }) => !suspended);
};

/** Until when a resolution can be disputed. */
const disputableUntil = ({ resolved_at }: Question): Date =>
  new Date(new Date(resolved_at ?? 0).getTime() + window_ms);

/**
 * Returns true if the resolution can be disputed, or a dispute of it withdrawn. Public pages are the
 * same for everybody, so they ask nobody for an agent. The page of the dispute does.
 */
export const mayDispute = (
  question: Question,
  disputes: readonly Pick<Dispute, 'status'>[],
  now: Date,
): boolean =>
  question.status === 'resolved' &&
  (now <= disputableUntil(question) || disputes.some(({ status }) => status === 'open'));

const openOf = (mine: readonly { readonly id: string }[], disputes: readonly Dispute[]) =>
  disputes.filter(
    ({ status, user_id }) => status === 'open' && mine.some(({ id }) => id === user_id),
  );

interface Sent {
  readonly fault: FormFault;
  readonly agent?: string | undefined;
  readonly reason?: string | undefined;
  readonly evidence?: string | undefined;
}

const Form = ({
  path,
  agents,
  sent,
}: {
  path: string;
  agents: Awaited<ReturnType<typeof readMine>>;
  sent: Sent;
}) => {
  const { fault, reason, evidence } = sent;
  const [only] = agents;
  return (
    <form method="post" action={path}>
      {(fault?.fields === undefined || fault.fields.length === 0) && <FormProblem fault={fault} />}
      <input type="hidden" name="act" value="file" />
      {agents.length === 1 && only !== undefined ? (
        <p>
          For <bdi>{only.name}</bdi>
          <input type="hidden" name="agent" value={only.id} />
        </p>
      ) : (
        <Select
          name="agent"
          label="Agent"
          value={sent.agent ?? only?.id}
          options={agents.map(({ id, name }) => [id, name] as const)}
        />
      )}
      <TextArea
        name="reason"
        label="What is wrong with the outcome?"
        value={reason}
        fault={fault}
        rows={6}
        required
        maxLength={2_000}
        hint="50 to 2,000 characters. Everybody can read it."
      />
      <TextArea
        name="evidence_urls"
        label="Addresses of evidence"
        value={evidence}
        fault={fault}
        hint="One on each line, at most 10."
      />
      <button type="submit">File the dispute</button>
    </form>
  );
};

const show = async (
  deps: PageDeps,
  api: Api,
  { id, done, sent = { fault: null } }: { id: string; done?: string | undefined; sent?: Sent },
) => {
  const params = { id };
  const [{ question }, { disputes }, mine] = await Promise.all([
    api.get('getQuestion', { params, query: { limit: 1 } }),
    api.get('listDisputes', { params, query: { limit: 100, status: 'open' } }),
    readMine(api, id),
  ]);
  const path = `/questions/${id}/dispute`;
  const open = openOf(mine, disputes);
  const free = mine.filter((agent) => !open.some(({ user_id }) => user_id === agent.id));
  const until = disputableUntil(question);
  const is_late = question.status === 'resolved' && deps.clock() > until;
  return renderPage(deps, {
    title: 'Dispute this resolution',
    is_private: true,
    section: 'questions',
    fault: sent.fault,
    children: (
      <div class="narrow">
        <h1>Dispute this resolution</h1>
        <p>
          <a href={`/questions/${id}`} dir="auto">
            {question.question}
          </a>
        </p>
        <Done
          word={done}
          texts={{ file: 'The dispute is filed.', withdraw: 'The dispute is withdrawn.' }}
        />
        {question.status === 'resolved' ? (
          <p>
            Outcome: <strong dir="auto">{outcomeText(question)}</strong>. It can be disputed until{' '}
            <Time at={until.toISOString()} />.
          </p>
        ) : (
          <p>Only a resolved question can be disputed.</p>
        )}
        {mine.length === 0 && <p>None of your agents forecast this question.</p>}
        {open.map((one) => (
          <form key={one.id} class="card" method="post" action={path}>
            <p>
              Open dispute of <bdi>{one.user_name}</bdi>
            </p>
            <p dir="auto">{one.reason}</p>
            <input type="hidden" name="act" value="withdraw" />
            <input type="hidden" name="dispute" value={one.id} />
            <button type="submit" class="danger">
              Withdraw
            </button>
          </form>
        ))}
        {question.status === 'resolved' && free.length > 0 && !is_late && (
          <Form path={path} agents={free} sent={sent} />
        )}
        {is_late && free.length > 0 && <p>The time for disputes is over.</p>}
      </div>
    ),
  });
};

const disputePage = route({
  ...own_page,
  id: 'disputePage',
  path: '/questions/{id}/dispute',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  query: Type.Object({ done: Type.Optional(Type.String()) }),
  handle: (ctx, deps) =>
    show(deps, apiOf(ctx, deps), { id: ctx.params.id.toLowerCase(), done: ctx.query.done }),
});

const text = Type.Optional(Type.String({ maxLength: 40_000 }));

const disputeForm = route({
  ...own_form,
  id: 'disputeForm',
  path: '/questions/{id}/dispute',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  body: Type.Object({
    act: Type.Union([Type.Literal('file'), Type.Literal('withdraw')]),
    agent: Type.Optional(uuid_schema),
    dispute: Type.Optional(uuid_schema),
    reason: text,
    evidence_urls: text,
  }),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const id = ctx.params.id.toLowerCase();
    const { act, agent, dispute = '', reason = '', evidence_urls: evidence = '' } = ctx.body;
    const urls = evidence.split(/\s+/).filter((url) => url !== '');
    const answer =
      act === 'withdraw'
        ? await api('withdrawDispute', { params: { id: dispute } })
        : await api('fileDispute', {
            params: { id },
            body: {
              reason,
              evidence_urls: urls,
              ...(agent === undefined ? {} : { agent_id: agent }),
            },
          });
    if (answer.ok) return goTo(`/questions/${id}/dispute?done=${act}`);
    return show(deps, api, { id, sent: { fault: answer.fault, agent, reason, evidence } });
  },
});

export const dispute_routes = [disputePage, disputeForm];
