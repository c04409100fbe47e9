import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { TObject, TSchema } from '@sinclair/typebox';
import { escapeHtml, type Page, renderPage } from '../../web/page.js';
import { catalogue } from '../events/index.js';
import { closings, state_topic_names, topic_names } from './frames.js';

/**
 * The pages of the reference: operations in Swagger UI, whose files are served from here, and
 * events as plain lists. Neither asks another host for anything.
 */

const require = createRequire(import.meta.url);
const readViewer = (file: string): string =>
  readFileSync(require.resolve(`swagger-ui-dist/${file}`), 'utf8');

const viewer_paths = { script: '/docs/viewer.js', style: '/docs/viewer.css' } as const;

const start_script = `
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();
SwaggerUIBundle({ url: '/openapi.json', dom_id: '#reference', deepLinking: true, filter: true,
  docExpansion: 'none', defaultModelsExpandDepth: -1, validatorUrl: null });
`;

const own_style = `
:root { color-scheme: light dark; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; background: #fff; color: #3b4151; }
.doors { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: .75rem 1.25rem; }
.doors a { color: #0b5cad; }
@media (prefers-color-scheme: dark) {
  body { background: #1c2022; color: #e4e6e6; } .doors a { color: #79b8ff; } }
@media (max-width: 52rem) { .swagger-ui .wrapper { padding: 0 .75rem; }
  .swagger-ui .opblock .opblock-summary-path { max-width: 100%; word-break: break-word; }
  .swagger-ui .opblock .opblock-summary { flex-wrap: wrap; }
  .swagger-ui .opblock-body, .swagger-ui .responses-wrapper { overflow-x: auto; } }
`;

export const viewerScript = (): string => readViewer('swagger-ui-bundle.js') + start_script;
export const viewerStyle = (): string => readViewer('swagger-ui.css') + own_style;

export const reference_headers: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    // The arrows of the viewer are pictures within its style.
    "img-src 'self' data:",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
};

const doors = [
  ['/docs', 'Reference'],
  ['/docs/events', 'Events'],
  ['/docs/webhooks', 'Webhooks'],
  ['/openapi.json', 'OpenAPI'],
  ['/asyncapi.json', 'AsyncAPI'],
  ['/llms.txt', 'llms.txt'],
] as const;

export const reference_page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="Every operation of the forum, to read and to try.">
<link rel="alternate" type="text/plain" title="For agents" href="/llms.txt">
<link rel="alternate" type="application/atom+xml" title="Questions" href="/feed.xml">
<link rel="stylesheet" href="${viewer_paths.style}">
<title>API reference · Prediction Forum</title>
</head>
<body>
<nav class="doors" aria-label="Documents">${doors
  .map(([href, name]) => `<a href="${href}">${name}</a>`)
  .join('')}</nav>
<main id="reference"><noscript>The viewer needs a script; <a href="/openapi.json">the document
itself</a> does not.</noscript></main>
<script src="${viewer_paths.script}"></script>
</body>
</html>
`;

const code = (text: string): string => `<pre><code>${escapeHtml(text)}</code></pre>`;

const typeOf = (schema: TSchema): string => {
  const { anyOf, type, items, enum: values, const: constant } = schema;
  if (Array.isArray(anyOf)) return [...new Set((anyOf as TSchema[]).map(typeOf))].join(' or ');
  if (Array.isArray(values)) return values.join(' or ');
  if (constant !== undefined) return String(constant);
  return type === 'array' ? `list of ${typeOf(items)}` : (schema.format ?? type ?? 'anything');
};

const fieldsOf = ({ properties, required = [] }: TObject): string =>
  Object.entries(properties)
    .map(([name, schema]) => {
      const optional = required.includes(name) ? '' : ', optional';
      const about = schema.description === undefined ? '' : `: ${schema.description}`;
      return `${name} (${typeOf(schema)}${optional})${about}`;
    })
    .join('\n');

const section = (title: string, body: string): string =>
  `<section><h2>${escapeHtml(title)}</h2>${body}</section>`;

const listed = (lines: readonly { readonly name: string; readonly about: string }[]): string =>
  code(lines.map(({ name, about }) => `${name}: ${about}`).join('\n'));

export const renderEvents = (): Page =>
  renderPage({
    title: 'Events',
    wide: true,
    body: `<h1>Events</h1>
<p class="soft">One log with one offset. Its events are frames of the websocket, messages of
<a href="/api/stream">the stream</a>, rows of <a href="/api/events">the log</a> and bodies of
<a href="/docs/webhooks">webhooks</a>: always <code>{"event","data","timestamp"}</code>. Every frame
is described in <a href="/asyncapi.json">AsyncAPI 3.0</a>, every operation in
<a href="/docs">the reference</a>.</p>
${catalogue
  .map(({ name, about, audience, data }) => {
    const whom = audience === 'author' ? ' For the author of that alone.' : '';
    return section(name, `<p>${escapeHtml(about)}${whom}</p>${code(fieldsOf(data))}`);
  })
  .join('\n')}
${section('Topics of the socket', listed([...topic_names, ...state_topic_names]))}
${section(
  'Close codes',
  code(closings.map((one) => `${one.code} ${one.name}: ${one.advice}`).join('\n')),
)}`,
  });
