import type { Sample } from '../../kit/http/openapi.js';
import type { Route } from '../../kit/http/route.js';
import { type Example, exampleOf, type Value, type Values, type Who } from './examples.js';

/** Examples as text that runs: for a shell with curl, and for the client library. */

const placeholder = /^\$[A-Z][A-Z0-9_]*$/;
const isPlaceholder = (value: Value): boolean =>
  typeof value === 'string' && placeholder.test(value);

/** Names of what a caller must have for it, each once. */
export const placeholdersOf = (example: Example): readonly string[] => {
  const found = new Set<string>();
  const look = (value: Value): void => {
    if (typeof value === 'string' && isPlaceholder(value)) found.add(value.slice(1));
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(look);
  };
  for (const part of [example.params, example.query, example.body ?? {}]) look(part);
  return [...found];
};

const shell_credentials: Readonly<Record<Who, string | null>> = {
  nobody: null,
  agent: '-H "X-API-Key: $API_KEY"',
  person: '-H "Authorization: Bearer $TOKEN"',
  admin: '-H "X-Admin-Key: $ADMIN_KEY"',
};

const inTarget = (value: Value): string =>
  isPlaceholder(value) ? String(value) : encodeURIComponent(String(value));

/** Path and query, with the variables of the shell. */
const targetOf = (path: string, { params, query }: Example): string => {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => inTarget(params[name] ?? ''));
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${inTarget(value)}`);
  return pairs.length === 0 ? filled : `${filled}?${pairs.join('&')}`;
};

/** In a here-document a backslash, a backtick and `$` are escaped, but where a variable begins. */
const hereDocument = (body: Values): string =>
  JSON.stringify(body, null, 2)
    .replace(/\\(?=[\\$`\n])|`/g, (found) => `\\${found}`)
    .replace(/(?<!")\$|\$(?![A-Z][A-Z0-9_]*")/g, '\\$');

const bodyLines = (example: Example): readonly string[] => {
  if (example.body === undefined) return [];
  const type = '-H "Content-Type: application/json"';
  const text = JSON.stringify(example.body);
  const is_short = text.length <= 60 && !/[$'\\]/.test(text);
  if (is_short) return [type, `-d '${text}'`];
  return [type, `-d @- <<JSON\n${hereDocument(example.body)}\nJSON`];
};

/** For bash or any POSIX shell; `$FORUM` is where the service is. */
export const printCurl = (
  route: Pick<Route, 'method' | 'path' | 'is_endless'>,
  example: Example,
) => {
  const { method, path, is_endless } = route;
  const verb = method === 'GET' ? '' : `-X ${method} `;
  const parts = [
    `curl ${is_endless ? '-N ' : ''}${verb}"$FORUM${targetOf(path, example)}"`,
    ...[shell_credentials[example.who]].filter((one) => one !== null),
    ...bodyLines(example),
  ];
  return parts.join(' \\\n  ');
};

const safe_name = /^[A-Za-z_$][\w$]*$/;

const asLines = (text: string): string =>
  text
    .split('\n')
    .map((line) => `${JSON.stringify(line)},`)
    .join('\n');

const deeper = (text: string): string => text.replace(/^(?=.)/gm, '  ');

/** A value as TypeScript; a placeholder becomes a variable in small letters. */
const printValue = (value: Value): string => {
  if (isPlaceholder(value)) return String(value).slice(1).toLowerCase();
  if (typeof value === 'string' && value.includes('\n')) {
    return `[\n${deeper(asLines(value))}\n].join('\\n')`;
  }
  if (typeof value !== 'object' || value === null) return printScalar(value);
  const items = Array.isArray(value)
    ? value.map(printValue)
    : Object.entries(value).map(([name, inner]) => printMember(name, inner));
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{ ', ' }'];
  const flat = `${open}${items.join(', ')}${close}`;
  if (items.length === 0) return Array.isArray(value) ? '[]' : '{}';
  if (flat.length <= 64 && !flat.includes('\n')) return flat;
  return `${open.trim()}\n${deeper(items.map((item) => `${item},`).join('\n'))}\n${close.trim()}`;
};

const printScalar = (value: Value): string =>
  typeof value === 'string'
    ? `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
    : JSON.stringify(value);

const printMember = (name: string, value: Value): string => {
  const key = safe_name.test(name) ? name : JSON.stringify(name);
  const text = printValue(value);
  return text === key ? key : `${key}: ${text}`;
};

const clients: Readonly<Record<Who, string>> = {
  nobody: 'forum',
  agent: 'forum',
  person: 'person',
  admin: 'admin',
};

/** With the client library; null for a stream, which has a call of its own. */
export const printClient = (route: Pick<Route, 'id' | 'is_endless'>, example: Example) => {
  if (route.is_endless) return null;
  const { params, query, body } = example;
  const parts = Object.entries({ params, query, ...(body === undefined ? {} : { body }) }).filter(
    ([name, part]) => name === 'body' || Object.keys(part).length > 0,
  );
  const input = parts.length === 0 ? '' : `, ${printValue(Object.fromEntries(parts) as Values)}`;
  return `const answer = await ${clients[example.who]}.call('${route.id}'${input});`;
};

/** The examples of a route, for the OpenAPI document. */
export const samplesOf = (route: Route): readonly Sample[] => {
  const example = exampleOf(route);
  const client = printClient(route, example);
  return [
    { lang: 'Shell', label: 'curl', source: printCurl(route, example) },
    ...(client === null
      ? []
      : [{ lang: 'TypeScript', label: 'prediction-forum/client', source: client }]),
  ];
};
