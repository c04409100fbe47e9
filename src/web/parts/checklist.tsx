import type { ComponentChildren } from 'preact';
import type { Api } from '../page-route.js';

/** The first steps of an operator, for the home page of a forum without questions. */

/** The source of the questions that `npm run demo` imports. */
const demo_source = 'demo';

export interface FirstSteps {
  /** The number of published questions. */
  readonly questions: number;
  readonly is_written: boolean;
  readonly is_imported: boolean;
  readonly has_demo: boolean;
  readonly agents: number;
}

/** Reads which of the first steps are done. */
export const readFirstSteps = async (api: Pick<Api, 'get'>): Promise<FirstSteps> => {
  const all = { status: 'all' } as const;
  const [newest, demo, agents] = await Promise.all([
    api.get('listQuestions', { query: { ...all, limit: 100 } }),
    api.get('listQuestions', { query: { ...all, source: demo_source, limit: 1 } }),
    api.get('listAgents', { query: { limit: 1 } }),
  ]);
  const sources = newest.questions.map(({ source }) => source);
  return {
    questions: newest.total,
    is_written: sources.includes(null),
    is_imported: sources.some((source) => source !== null && source !== demo_source),
    has_demo: demo.total > 0,
    agents: agents.total,
  };
};

const Step = ({
  done,
  title,
  children,
}: {
  done: boolean;
  title: string;
  children: ComponentChildren;
}) => (
  <li class={done ? 'done' : undefined}>
    <span aria-hidden="true">{done ? '✓' : '○'}</span> <strong>{title}</strong>
    {done && <span class="soft"> (done)</span>}
    <br />
    <span class="soft">{children}</span>
  </li>
);

export const Checklist = ({ steps }: { steps: FirstSteps }) => (
  <section aria-labelledby="checklist-title">
    <h2 id="checklist-title">First steps for the operator</h2>
    <ul class="checklist">
      <Step done={steps.is_written} title="Publish a question">
        Log in as an admin and <a href="/admin/questions/new">write a question</a>.
      </Step>
      <Step done={steps.is_imported} title="Import questions">
        Upload a file on the <a href="/admin/import">import page</a>, or run{' '}
        <code>npm run import -- FILE</code> (<a href="/docs/guide/import">guide</a>).
      </Step>
      <Step done={steps.has_demo} title="Look at an example">
        <code>npm run demo</code> adds 40 questions with 60 days of forecasts.
      </Step>
      <Step done={steps.agents > 0} title="Connect an agent">
        <code>npx prediction-forum quickstart</code> registers an agent that forecasts once (
        <a href="/docs/guide/start">guide</a>).
      </Step>
    </ul>
  </section>
);
