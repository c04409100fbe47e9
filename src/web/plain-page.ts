import { createHash } from 'node:crypto';
import { escapeHtml } from '../kit/svg.js';

export { escapeHtml };

/**
 * Server-rendered pages. Each is one file: its style and its script are inline and named by their
 * hashes in the content security policy, so nothing else can run, load or be embedded.
 */

const common_style = `
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --paper: #f6f7f9;
  --card: #fff; --line: #d5dae0; --lead: #0b5cad; --on-lead: #fff; --bad: #a40e26; --good: #116329; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebef; --soft: #9aa5b1; --paper: #14171b;
  --card: #1d2126; --line: #3a424b; --lead: #6cb2ff; --on-lead: #0b1420; --bad: #ff8f9c;
  --good: #6bd688; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 34rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
.brand { color: var(--soft); font-size: .875rem; letter-spacing: .04em; text-transform: uppercase; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .25rem 0 .5rem; }
h2 { font-size: 1.1rem; margin: 0 0 .75rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .5rem; }
pre + p { margin-top: 1rem; }
p { margin: 0 0 1rem; }
.soft { color: var(--soft); }
section, article { background: var(--card); border: 1px solid var(--line); border-radius: .75rem;
  padding: 1.25rem; margin: 1rem 0; }
label { display: block; font-weight: 600; margin: .75rem 0 .25rem; }
input { width: 100%; font: inherit; color: inherit; background: var(--paper);
  border: 1px solid var(--soft); border-radius: .5rem; padding: .6rem .7rem; }
button, .button { font: inherit; font-weight: 600; border: 1px solid var(--lead);
  border-radius: .5rem; padding: .6rem 1rem; margin-top: 1rem; cursor: pointer;
  background: var(--lead); color: var(--on-lead); display: inline-block; text-decoration: none; }
button.plain { background: transparent; color: var(--lead); border-color: transparent;
  padding: .25rem; margin: 0; }
button[disabled] { opacity: .6; cursor: progress; }
:focus-visible { outline: 3px solid var(--lead); outline-offset: 2px; }
a { color: var(--lead); }
ul { list-style: none; padding: 0; margin: 0; }
li { display: flex; justify-content: space-between; gap: 1rem; align-items: baseline;
  padding: .5rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
li:first-child { border-top: 0; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font: .875rem/1.5 ui-monospace,
  monospace; }
[role=status] { min-height: 1.5rem; margin: 1rem 0 0; }
.bad { color: var(--bad); }
.good { color: var(--good); }
[hidden] { display: none !important; }
`;

export interface PageParts {
  readonly title: string;
  /** HTML; whatever comes from outside must have been escaped. */
  readonly body: string;
  readonly script?: string;
  /** Beside the style of all pages. */
  readonly style?: string;
}

export interface Page {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The source of an inline style or script, for the content security policy. */
export const hashOf = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

export const renderPage = (parts: PageParts): Page => {
  const { title, body, script } = parts;
  const style = common_style + (parts.style ?? '');
  const policy = [
    "default-src 'none'",
    `style-src ${hashOf(style)}`,
    ...(script === undefined ? [] : [`script-src ${hashOf(script)}`, "connect-src 'self'"]),
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="alternate" type="application/atom+xml" title="Questions" href="/feed.xml">
<title>${escapeHtml(title)} · Prediction Forum</title>
<style>${style}</style>
</head>
<body>
<main>
<div class="brand">Prediction Forum</div>
${body}
</main>
${script === undefined ? '' : `<script>${script}</script>`}
</body>
</html>
`,
    headers: {
      'Content-Security-Policy': policy.join('; '),
      'Referrer-Policy': 'no-referrer',
      'X-Frame-Options': 'DENY',
      'Cache-Control': 'no-store',
    },
  };
};
