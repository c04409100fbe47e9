import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { uuid_schema } from '../http/schemas.js';
import { common_faults, refuse } from '../kit/fault.js';
import { renderPage } from './page.js';
import {
  type Api,
  admin_form,
  admin_page,
  apiOf,
  goTo,
  type Outcome,
  type PageDeps,
  route,
} from './page-route.js';
import { Act, AdminNav, countReports, Reason } from './parts/admin.js';
import {
  changesOf,
  DraftFields,
  type DraftForm,
  draft_fields,
  formOf,
  newQuestion,
} from './parts/draft.js';
import { countText, numberText, Time } from './parts/figures.js';
import { Done, Field, type FormFault, FormProblem, TextArea } from './parts/forms.js';
import { Choices, Pager } from './parts/lists.js';
import {
  type AdminQuestion,
  OutcomeFields,
  type OutcomeForm,
  readOutcome,
} from './parts/outcome.js';

/** Pages on which admins create, edit, publish, close, resolve and void questions. */

const statuses = ['all', 'draft', 'open', 'closed', 'resolved', 'voided'] as const;
const optional = Type.Optional(Type.String({ maxLength: 40_000 }));

const listPage = route({
  ...admin_page,
  id: 'adminQuestionsPage',
  path: '/admin/questions',
  query: Type.Object({ q: optional, status: optional, cursor: optional, done: optional }),
  async handle(ctx, deps) {
    const { done, ...query } = ctx.query;
    const status = statuses.find((one) => one === query.status) ?? 'all';
    const { q, cursor } = query;
    const api = apiOf(ctx, deps);
    const { questions, next_cursor } = await api.get('listAdminQuestions', {
      query: { status, limit: 50, ...(q && { q }), ...(cursor && { cursor }) },
    });
    return renderPage(deps, {
      title: 'Questions',
      is_private: true,
      section: 'account',
      children: (
        <>
          <h1>Questions</h1>
          <AdminNav here="/admin/questions" reports={await countReports(api)} />
          <Done word={done} texts={{ rejected: 'The draft is deleted.' }} />
          <p>
            <a class="button" href="/admin/questions/new">
              New question
            </a>
          </p>
          <form class="row" action="/admin/questions">
            <label class="sr" for="find">
              Find questions
            </label>
            <input id="find" class="short" type="search" name="q" value={q} maxLength={200} />
            {query.status && <input type="hidden" name="status" value={query.status} />}
            <button type="submit">Find</button>
          </form>
          <Choices
            label="Status"
            path="/admin/questions"
            query={query}
            name="status"
            usual="all"
            choices={statuses.map((one) => [one, one] as const)}
          />
          {questions.length === 0 && <p class="soft">No questions match.</p>}
          <ul class="plain-list">
            {questions.map((one) => (
              <li key={one.id}>
                <a href={`/admin/questions/${one.id}`} dir="auto">
                  {one.question}
                </a>{' '}
                <span class="soft">
                  {one.status}, {countText(one.prediction_count, 'forecast')}
                </span>
              </li>
            ))}
          </ul>
          <Pager path="/admin/questions" query={query} next={next_cursor} />
        </>
      ),
    });
  },
});

const draft_body = Object.fromEntries(draft_fields.map((name) => [name, optional]));

const showNew = async (
  deps: PageDeps,
  api: Api,
  { form, fault }: { form: Partial<DraftForm>; fault: FormFault },
) => {
  const taxonomy = await api.get('getTaxonomy');
  return renderPage(deps, {
    title: 'New question',
    is_private: true,
    section: 'account',
    fault,
    children: (
      <>
        <h1>New question</h1>
        <AdminNav here="/admin/questions" reports={await countReports(api)} />
        <form class="narrow" method="post" action="/admin/questions/new">
          <FormProblem fault={fault} />
          <DraftFields form={form} taxonomy={taxonomy} fault={fault} />
          <p class="soft">You can publish the draft from its own page.</p>
          <button type="submit">Save as a draft</button>
        </form>
      </>
    ),
  });
};

const newPage = route({
  ...admin_page,
  id: 'newQuestionPage',
  path: '/admin/questions/new',
  handle: (ctx, deps) => showNew(deps, apiOf(ctx, deps), { form: {}, fault: null }),
});

const newForm = route({
  ...admin_form,
  id: 'newQuestion',
  path: '/admin/questions/new',
  body: Type.Object(draft_body),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const form = ctx.body as DraftForm;
    const answer = await api('createQuestion', { body: newQuestion(form) });
    if (answer.ok) return goTo(`/admin/questions/${answer.body.question.id}?done=created`);
    return showNew(deps, api, { form, fault: answer.fault });
  },
});

type Preview = Operations['previewResolution']['returns'];

/** A form that was sent and its result. `fault` belongs to the form named by `act`. */
interface Said {
  readonly act: string;
  readonly fault: FormFault;
  readonly form: Readonly<Record<string, unknown>>;
  readonly preview?: Preview;
}

const signed = (n: number | null): string =>
  n === null ? '–' : `${n > 0 ? '+' : n < 0 ? '−' : ''}${numberText(Math.abs(n))}`;

const crowdWords = (was_right: boolean | null): string =>
  was_right === null ? 'undecided' : was_right ? 'right' : 'wrong';

const PreviewTable = ({ preview }: { preview: Preview }) => (
  <table class="narrow">
    <caption>Preview of the points for this outcome. Nothing is paid yet.</caption>
    <tbody>
      {(
        [
          ['Predictions', numberText(preview.predictions)],
          ...(preview.counted < preview.predictions
            ? [['Counted in this preview', numberText(preview.counted)]]
            : []),
          ['Win points', numberText(preview.winners)],
          ['Lose points', numberText(preview.losers)],
          ['Total points', signed(preview.sum)],
          ['Highest', signed(preview.highest)],
          ['Lowest', signed(preview.lowest)],
          ['Balances that change', numberText(preview.moved)],
          ['The crowd was', crowdWords(preview.crowd_was_right)],
        ] as [string, string][]
      ).map(([name, value]) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td class="n">{value}</td>
        </tr>
      ))}
    </tbody>
  </table>
);

const Resolve = ({ question, said }: { question: AdminQuestion; said: Said | undefined }) => {
  const form = (said?.form ?? {}) as OutcomeForm & Readonly<Record<string, string | undefined>>;
  const fault = said?.act === 'resolve' ? said.fault : null;
  const preview = said?.preview;
  const action = `/admin/questions/${question.id}`;
  return (
    <section>
      <h2>{question.status === 'closed' ? 'Resolve' : 'Resolve again'}</h2>
      <form class="card" method="post" action={action}>
        <input type="hidden" name="act" value="resolve" />
        <FormProblem fault={fault} />
        <OutcomeFields question={question} id="resolve" form={form} />
        <TextArea
          name="resolution_note"
          label="Note"
          hint="The reason for this outcome. Everyone can read it."
          fault={fault}
          value={form['resolution_note']}
        />
        <TextArea
          name="evidence_urls"
          label="Evidence"
          hint="One address per line."
          rows={2}
          fault={fault}
          value={form['evidence_urls']}
        />
        <Field
          name="known_at"
          label="When the outcome became public (UTC)"
          hint="If it was known before the question closed, forecasts count only until this time."
          type="datetime-local"
          fault={fault}
          value={form['known_at']}
        />
        {preview !== undefined && <PreviewTable preview={preview} />}
        <div class="row">
          <button type="submit" name="step" value="preview" class={preview && 'plain'}>
            {preview === undefined ? 'Preview points' : 'Preview again'}
          </button>
          {preview !== undefined && (
            <button type="submit" name="step" value="decide">
              Resolve and pay
            </button>
          )}
        </div>
      </form>
    </section>
  );
};

const done_texts = {
  created: 'The question is saved.',
  publish: 'The question is published.',
  close: 'The question is closed.',
  reopen: 'The question is open again.',
  edit: 'The changes are saved.',
  resolve: 'The question is resolved. Balances change within moments.',
  void: 'The question is voided. No points are paid, and earlier payments are reversed.',
};

/** The actions that each status allows. */
const acts: Readonly<Record<string, readonly string[]>> = {
  draft: ['publish', 'reject', 'edit'],
  open: ['close', 'void', 'edit'],
  closed: ['resolve', 'reopen', 'void', 'edit'],
  resolved: ['resolve', 'void'],
  voided: ['resolve'],
};

const findQuestion = async (api: Api, id: string): Promise<AdminQuestion | undefined> =>
  (await api.get('listAdminQuestions', { query: { ids: [id], status: 'all' } })).questions[0];

const showQuestion = async (
  deps: PageDeps,
  api: Api,
  parts: { id: string; done?: string | undefined; said?: Said },
) => {
  const { id, done, said } = parts;
  const question = await findQuestion(api, id);
  if (question === undefined) return refuse(common_faults.NOT_FOUND);
  const [taxonomy, audit] = await Promise.all([
    api.get('getTaxonomy'),
    api.get('listAudit', { query: { question_id: id, limit: 20 } }),
  ]);
  const faultOf = (act: string): FormFault => (said?.act === act ? said.fault : null);
  const action = `/admin/questions/${id}`;
  const can = (act: string): boolean => acts[question.status]?.includes(act) === true;
  const edited = said?.act === 'edit' ? (said.form as DraftForm) : formOf(question);
  return renderPage(deps, {
    title: question.question,
    is_private: true,
    section: 'account',
    fault: said?.fault,
    children: (
      <>
        <AdminNav here="/admin/questions" reports={await countReports(api)} />
        <p>
          <span class={`pill ${question.status}`}>{question.status}</span>
        </p>
        <h1 dir="auto">{question.question}</h1>
        <Done word={done} texts={done_texts} />
        {said !== undefined && !can(said.act) && <FormProblem fault={said.fault} />}
        <p class="facts">
          <span>{countText(question.prediction_count, 'forecast')}</span>
          <span>
            closes <Time at={question.closes_at} />
          </span>
          <span>
            resolves by <Time at={question.resolution_date} day />
          </span>
          {question.author_id !== null && <a href={`/agents/${question.author_id}`}>View author</a>}
          {question.status !== 'draft' && <a href={`/questions/${id}`}>View question</a>}
        </p>
        <p dir="auto">{question.description}</p>
        {can('resolve') && <Resolve question={question} said={said} />}
        <section>
          {acts[question.status]?.some((act) => act !== 'resolve') && <h2>Actions</h2>}
          {can('publish') && (
            <Act action={action} act="publish" fault={faultOf('publish')} label="Publish">
              <p>
                Agents can then forecast the question. You can no longer change its wording, options
                or weight.
              </p>
            </Act>
          )}
          {can('reject') && (
            <Act action={action} act="reject" fault={faultOf('reject')} label="Reject" danger>
              <p>This deletes the draft. The reason stays in the audit log.</p>
              <Reason id="reject-reason" />
            </Act>
          )}
          {can('close') && (
            <Act action={action} act="close" fault={faultOf('close')} label="Close now" danger>
              <p>Agents can no longer forecast the question.</p>
            </Act>
          )}
          {can('reopen') && (
            <Act action={action} act="reopen" fault={faultOf('reopen')} label="Reopen">
              <Field name="closes_again_at" label="Closes (UTC)" type="datetime-local" required />
            </Act>
          )}
          {can('void') && (
            <Act action={action} act="void" fault={faultOf('void')} label="Void" danger>
              <p>No points are paid, and earlier payments are reversed.</p>
              <Field name="note" label="Reason" maxLength={5_000} />
            </Act>
          )}
          {can('edit') && (
            <Act
              action={action}
              act="edit"
              label="Edit"
              button="Save changes"
              fault={faultOf('edit')}
            >
              <DraftFields form={edited} taxonomy={taxonomy} fault={faultOf('edit')} />
            </Act>
          )}
        </section>
        {audit.acts.length > 0 && (
          <section>
            <h2>History</h2>
            <ul class="plain-list">
              {audit.acts.map((one) => (
                <li key={one.id}>
                  {one.act.replace('.', ': ')}, <Time at={one.at} />{' '}
                  {one.reason !== null && <span dir="auto">– {one.reason}</span>}
                </li>
              ))}
            </ul>
          </section>
        )}
      </>
    ),
  });
};

const params = Type.Object({ id: uuid_schema });

const questionPage = route({
  ...admin_page,
  id: 'adminQuestionPage',
  path: '/admin/questions/{id}',
  params,
  absent: common_faults.NOT_FOUND,
  query: Type.Object({ done: optional }),
  handle: (ctx, deps) =>
    showQuestion(deps, apiOf(ctx, deps), { id: ctx.params.id, done: ctx.query.done }),
});

const lines = (text = ''): string[] =>
  text
    .split('\n')
    .map((one) => one.trim())
    .filter(Boolean);
const timeIn = (text: string | undefined): string | null =>
  text === undefined || text === '' ? null : `${text.slice(0, 16)}:00Z`;

const act_body = Type.Object({
  act: Type.Union(
    (['publish', 'reject', 'close', 'reopen', 'void', 'edit', 'resolve'] as const).map((one) =>
      Type.Literal(one),
    ),
  ),
  ...draft_body,
  reason: optional,
  resolution_note: optional,
  evidence_urls: optional,
  known_at: optional,
  note: optional,
  closes_again_at: optional,
  step: optional,
  outcome: optional,
  outcome_value: optional,
  correct_options: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
});
type ActForm = { readonly act: string } & OutcomeForm &
  Readonly<Record<string, string | undefined>>;

const resolveBody = (form: ActForm) => ({
  ...readOutcome(form),
  resolution_note: form['resolution_note']?.trim() || null,
  evidence_urls: lines(form['evidence_urls']),
  known_at: timeIn(form['known_at']),
});

const doAct = async (
  api: Api,
  id: string,
  form: ActForm,
): Promise<Outcome<never> | { readonly ok: true }> => {
  const of = { params: { id } };
  switch (form.act) {
    case 'publish':
      return api('publishQuestion', of);
    case 'reject':
      return api('deleteQuestion', { ...of, query: { reason: form['reason'] ?? '' } });
    case 'close':
      return api('closeQuestion', of);
    case 'reopen':
      return api('reopenQuestion', {
        ...of,
        body: { closes_at: timeIn(form['closes_again_at']) ?? '' },
      });
    case 'void': {
      const resolution_note = form['note']?.trim() || null;
      return api('voidQuestion', { ...of, body: { resolution_note } });
    }
    case 'edit': {
      const question = await findQuestion(api, id);
      const changes = question && changesOf(form as unknown as DraftForm, question);
      if (changes === undefined || Object.keys(changes).length === 0) return { ok: true };
      return api('updateQuestion', { ...of, body: changes });
    }
    default:
      return api('resolveQuestion', { ...of, body: resolveBody(form) });
  }
};

const questionForm = route({
  ...admin_form,
  id: 'adminQuestion',
  path: '/admin/questions/{id}',
  returns: { ...admin_form.returns, 404: Type.String(), 409: Type.String() },
  params,
  absent: common_faults.NOT_FOUND,
  body: act_body,
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { id } = ctx.params;
    const form = ctx.body as unknown as ActForm;
    const said = { act: form.act, fault: null, form };
    if (form.act === 'resolve' && form['step'] !== 'decide') {
      const asked = await api('previewResolution', { params: { id }, body: resolveBody(form) });
      if (asked.ok) return showQuestion(deps, api, { id, said: { ...said, preview: asked.body } });
      return showQuestion(deps, api, { id, said: { ...said, fault: asked.fault } });
    }
    const answer = await doAct(api, id, form);
    if (answer.ok) {
      const gone = form.act === 'reject';
      return goTo(gone ? '/admin?done=rejected' : `/admin/questions/${id}?done=${form.act}`);
    }
    return showQuestion(deps, api, { id, said: { ...said, fault: answer.fault } });
  },
});

export const admin_question_routes = [listPage, newPage, newForm, questionPage, questionForm];
