/**
 * Runs a workflow of an Arazzo 1.0 document. Supports operations by their id in the source
 * description, runtime expressions, simple conditions, and retries after a failure.
 */

// biome-ignore lint/suspicious/noExplicitAny: documents of many shapes.
type Any = any;

interface Run {
  readonly inputs: Readonly<Record<string, unknown>>;
  /** Waits this many seconds. */
  readonly wait: (seconds: number) => Promise<void>;
}

export interface StepResult {
  readonly stepId: string;
  readonly status: number;
}

const readPointer = (value: Any, pointer: string): unknown =>
  pointer
    .split('/')
    .slice(1)
    .reduce((at, part) => at?.[part.replaceAll('~1', '/').replaceAll('~0', '~')], value);

/** Reads `$inputs.x`, `$steps.x.outputs.y`, `$statusCode` or `$response.body#/z`. */
const readExpression = (expression: string, scope: Any): unknown => {
  const [name = '', pointer] = expression.slice(1).split('#');
  const found = name.split('.').reduce((at, part) => at?.[part], scope);
  const value = pointer === undefined ? found : readPointer(found, pointer);
  if (value === undefined) throw new Error(`${expression} is nothing`);
  return value;
};

/**
 * Replaces the expressions in a value. If a string is one whole expression, the result has the type
 * of that expression's value.
 */
const fill = (value: Any, scope: Any): Any => {
  if (typeof value === 'string' && value.startsWith('$')) return readExpression(value, scope);
  if (typeof value === 'string') {
    return value.replace(/\{(\$[^}]+)\}/g, (_, one) => String(readExpression(one, scope)));
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner, scope)]));
};

const readOperand = (text: string, scope: Any): unknown =>
  text.startsWith('$') ? readExpression(text, scope) : JSON.parse(text);

const holds = ({ condition }: { readonly condition: string }, scope: Any): boolean => {
  const [, left = '', operator, right = ''] = /^(\S+) (==|>) (\S+)$/.exec(condition) ?? [];
  if (operator === undefined) throw new Error(`cannot read ${condition}`);
  const [a, b] = [readOperand(left, scope), readOperand(right, scope)] as [Any, Any];
  return operator === '==' ? a === b : a > b;
};

const findOperation = (openapi: Any, id: string) => {
  for (const [path, item] of Object.entries<Any>(openapi.paths)) {
    for (const [method, operation] of Object.entries<Any>(item)) {
      if (operation.operationId === id) return { path, method };
    }
  }
  throw new Error(`There is no operation ${id}.`);
};

const callStep = async (step: Any, openapi: Any, scope: Any): Promise<Any> => {
  const { path, method } = findOperation(openapi, step.operationId);
  let address = path;
  const query = new URLSearchParams();
  const headers: Record<string, string> = {};
  for (const { name, in: where, value } of step.parameters ?? []) {
    const filled = String(fill(value, scope));
    if (where === 'path') address = address.replace(`{${name}}`, encodeURIComponent(filled));
    else if (where === 'query') query.append(name, filled);
    else headers[name] = filled;
  }
  const { requestBody } = step;
  if (requestBody !== undefined) headers['content-type'] = requestBody.contentType;
  const answer = await fetch(`${openapi.servers[0].url}${address}?${query}`, {
    method: method.toUpperCase(),
    headers,
    ...(requestBody && { body: JSON.stringify(fill(requestBody.payload, scope)) }),
  });
  return { statusCode: answer.status, response: { body: await answer.json() } };
};

/** Returns the outputs of the workflow and every call that it made. Throws if a step fails. */
export const runWorkflow = async (document: Any, workflow_id: string, { inputs, wait }: Run) => {
  const [source] = document.sourceDescriptions;
  const openapi = await (await fetch(source.url)).json();
  const workflow = document.workflows.find(({ workflowId }: Any) => workflowId === workflow_id);
  const steps: Record<string, { outputs: Any }> = {};
  const calls: StepResult[] = [];
  for (const step of workflow.steps) {
    for (let tries = 0; ; tries += 1) {
      const scope = { inputs, steps };
      const called = { ...scope, ...(await callStep(step, openapi, scope)) };
      calls.push({ stepId: step.stepId, status: called.statusCode });
      const allHold = (criteria: Any): boolean => criteria.every((one: Any) => holds(one, called));
      if (allHold(step.successCriteria.slice(0, 1)) && allHold(step.successCriteria)) {
        steps[step.stepId] = { outputs: fill(step.outputs ?? {}, called) };
        break;
      }
      const action = step.onFailure?.find(({ criteria }: Any) => allHold(criteria));
      if (action?.type !== 'retry' || tries >= action.retryLimit) {
        throw new Error(`${step.stepId}: ${JSON.stringify(called.response.body)}`);
      }
      await wait(action.retryAfter);
    }
  }
  return { outputs: fill(workflow.outputs, { inputs, steps }), calls };
};
