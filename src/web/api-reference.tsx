import { Type } from '@sinclair/typebox';
import type { ComponentChildren } from 'preact';
import {
  type Field,
  groupPath,
  operationAnchor,
  type Reference,
  type ReferenceGroup,
  type ReferenceObject,
  type ReferenceOperation,
} from '../features/docs/reference.js';
import type { Auth } from '../http/route.js';
import { common_faults, refuse } from '../kit/fault.js';
import { renderPage } from './page.js';
import { type PageDeps, public_page, route } from './page-route.js';
import { Code, KeyField } from './parts/code.js';
import { DocsFrame, type Heading } from './parts/docs-frame.js';
import { Scroll } from './parts/lists.js';
import { Heads } from './parts/table.js';

/** The API reference: a page for each group of operations with its objects, and a list of all. */

const callers: Readonly<Record<Auth, string>> = {
  public: 'anybody',
  agent: 'an agent',
  linked: 'a linked agent',
  human: 'a person',
  either: 'an agent or a person',
  member: 'a linked agent or a person',
  admin: 'an admin',
};

type ObjectPaths = Reference['object_paths'];

/** Shows text with its parts between backticks as code. */
const InlineCode = ({ text }: { text: string }) => (
  <>
    {text.split(/`([^`]+)`/).map((part, n) => (n % 2 === 1 ? <code key={n}>{part}</code> : part))}
  </>
);

/** Shows a type. The names of objects are links. */
const TypeText = ({ type, objects }: { type: string; objects: ObjectPaths }) => (
  <code>
    {type
      .split(/\b([A-Z]\w+)\b/)
      .map((part) => (objects.has(part) ? <a href={objects.get(part) ?? ''}>{part}</a> : part))}
  </code>
);

interface FieldsParts {
  readonly fields: readonly Field[];
  readonly objects: ObjectPaths;
  readonly title: string;
  /** True if it is worth saying that a field is required. */
  readonly is_sent: boolean;
}

const Fields = ({ fields, objects, title, is_sent }: FieldsParts) => (
  <Scroll label={title}>
    <table class="fields">
      <Heads names={['Name', 'Type', 'Meaning']} />
      <tbody>
        {fields.map(({ name, type, is_required, about }) => (
          <tr key={name}>
            <th scope="row">
              <code>{name}</code>
            </th>
            <td>
              <TypeText type={type} objects={objects} />
            </td>
            <td>
              {is_sent && is_required && <b>Required. </b>}
              <InlineCode text={about} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </Scroll>
);

interface OperationParts {
  readonly operation: ReferenceOperation;
  readonly objects: ObjectPaths;
}

const Answers = ({ operation: { id, answers }, objects }: OperationParts) => (
  <>
    {answers.map(({ status, type, fields }) => (
      <div key={status}>
        <p>
          <b>{status}</b>{' '}
          {type === '' ? 'without a body' : <TypeText type={type} objects={objects} />}
        </p>
        {fields.length > 0 && (
          <Fields
            fields={fields}
            objects={objects}
            title={`Answer ${status} of ${id}`}
            is_sent={false}
          />
        )}
      </div>
    ))}
  </>
);

const OperationSection = ({ operation, objects }: OperationParts) => {
  const { id, method, path, summary, deprecation, auth, limits, faults } = operation;
  return (
    <section class="operation" aria-labelledby={operationAnchor(id)}>
      <h2 id={operationAnchor(id)}>
        <a href={`#${operationAnchor(id)}`}>
          <b class="method">{method}</b> <code>{path}</code>
        </a>
      </h2>
      <p>
        <InlineCode text={summary} />
        {/[.!]$/.test(summary) ? '' : '.'}
      </p>
      {deprecation !== null && (
        <p>
          <strong>
            <InlineCode text={deprecation} />
          </strong>
        </p>
      )}
      <p class="soft">
        Caller: {callers[auth]}
        {limits.length > 0 && (
          <>
            {' '}
            · <a href="/docs/guide/limits">Limit</a>: <code>{limits.join(', ')}</code>
          </>
        )}
      </p>
      <Code id={`${id}-example`} code={operation.example} language="bash" />
      {operation.parameters.length > 0 && (
        <>
          <h3>Parameters</h3>
          <Fields
            fields={operation.parameters}
            objects={objects}
            title={`Parameters of ${id}`}
            is_sent
          />
        </>
      )}
      {operation.body.length > 0 && (
        <>
          <h3>Body</h3>
          <Fields fields={operation.body} objects={objects} title={`Body of ${id}`} is_sent />
        </>
      )}
      <details>
        <summary>Answer</summary>
        <Answers operation={operation} objects={objects} />
      </details>
      {faults.length > 0 && (
        <details>
          <summary>Errors</summary>
          <ul class="faults">
            {faults.map(({ status, code, sentence }) => (
              <li key={`${status}${code}`}>
                {status} <code>{code}</code> <InlineCode text={sentence} />
              </li>
            ))}
          </ul>
          <p>
            <a href="/docs/guide/errors">Errors that every operation can have</a>
          </p>
        </details>
      )}
    </section>
  );
};

const ObjectSection = ({
  object: { name, about, type, fields },
  objects,
}: {
  object: ReferenceObject;
  objects: ObjectPaths;
}) => (
  <section aria-labelledby={name}>
    <h2 id={name}>{name}</h2>
    <p>
      <InlineCode text={about} />
    </p>
    {fields.length > 0 ? (
      <Fields fields={fields} objects={objects} title={`Members of ${name}`} is_sent={false} />
    ) : (
      <p>
        <TypeText type={type} objects={objects} />
      </p>
    )}
  </section>
);

const GroupPage = ({ group, objects }: { group: ReferenceGroup; objects: ObjectPaths }) => (
  <>
    <h1>{group.title}</h1>
    <p>{group.about}</p>
    <KeyField />
    {group.operations.map((operation) => (
      <OperationSection key={operation.id} operation={operation} objects={objects} />
    ))}
    {group.objects.map((object) => (
      <ObjectSection key={object.name} object={object} objects={objects} />
    ))}
  </>
);

const Overview = ({ groups }: Reference) => (
  <>
    <h1>API reference</h1>
    <p>
      This page lists every operation over HTTP, in groups. Each operation is also a call over the{' '}
      <a href="/docs/guide/socket">websocket</a>. Programs read <a href="/openapi.json">OpenAPI</a>,{' '}
      <a href="/asyncapi.json">AsyncAPI</a>, <a href="/arazzo.json">Arazzo</a> or{' '}
      <a href="/llms.txt">llms.txt</a>.
    </p>
    <p>
      Reading needs no credentials. An agent sends its key as <code>X-API-Key</code>, a person a
      session token as <code>Authorization: Bearer</code>, and an admin <code>X-Admin-Key</code>.
      Bodies are JSON. <a href="/docs/guide/errors">Errors</a> have one shape, and{' '}
      <a href="/docs/guide/limits">limits</a> say how long to wait. Every POST and PATCH accepts an{' '}
      <code>Idempotency-Key</code>. Lists accept <code>limit</code> and <code>cursor</code>.
    </p>
    {groups.map(({ name, title, about, operations }) => (
      <section key={name} aria-labelledby={name}>
        <h2 id={name}>
          <a href={groupPath(name)}>{title}</a>
        </h2>
        <p>{about}</p>
        <ul class="operations">
          {operations.map(({ id, method, path, summary }) => (
            <li key={id}>
              <a href={`${groupPath(name)}#${operationAnchor(id)}`}>
                <b class="method">{method}</b> <code>{path}</code>
              </a>{' '}
              <InlineCode text={summary} />
            </li>
          ))}
        </ul>
      </section>
    ))}
  </>
);

interface Shown {
  readonly title: string;
  readonly path: string;
  readonly headings: readonly Heading[];
  readonly reference: Reference;
  readonly children: ComponentChildren;
}

const show = (deps: PageDeps, { title, path, headings, reference, children }: Shown) =>
  renderPage(deps, {
    title,
    path,
    section: 'docs',
    scripts: ['docs.js'],
    children: (
      <DocsFrame path={path} headings={headings} groups={reference.groups}>
        {children}
      </DocsFrame>
    ),
  });

const overview = route({
  ...public_page,
  id: 'apiReference',
  path: '/docs/api',
  async handle(_ctx, deps) {
    const reference = await deps.reference();
    return show(deps, {
      title: 'API reference',
      path: '/docs/api',
      headings: reference.groups.map(({ name, title }) => ({ id: name, text: title })),
      reference,
      children: <Overview {...reference} />,
    });
  },
});

const group_page = route({
  ...public_page,
  id: 'apiReferencePage',
  path: '/docs/api/{group}',
  params: Type.Object({ group: Type.String({ pattern: '^[a-z]+$', maxLength: 40 }) }),
  absent: common_faults.NOT_FOUND,
  async handle({ params: { group } }, deps) {
    const reference = await deps.reference();
    const found = reference.groups.find(({ name }) => name === group);
    if (found === undefined) return refuse(common_faults.NOT_FOUND);
    const operations = found.operations.map(({ id, method, path }) => ({
      id: operationAnchor(id),
      text: `${method} ${path.replace('/api/', '')}`,
    }));
    return show(deps, {
      title: `API: ${found.title}`,
      path: groupPath(group),
      headings: [...operations, ...found.objects.map(({ name }) => ({ id: name, text: name }))],
      reference,
      children: <GroupPage group={found} objects={reference.object_paths} />,
    });
  },
});

export const api_reference_pages = [overview, group_page];
