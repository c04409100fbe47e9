import { createHash } from 'node:crypto';
import { type Reply, replyRaw } from '../../http/route.js';
import type { Fault } from '../../kit/fault.js';
import { escapeHtml } from '../../kit/html.js';
import { plainLine } from './rules.js';
import type { Theme } from './schema.js';
import { embed_script } from './script.js';
import { embed_style } from './style.js';

/** What all widgets have in common: the page around them and what a browser may do with it. */

/** The source of an inline style or script, for the content security policy. */
const hashOf = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** What an iframe with the widget has to allow: its script, and links that open in a new tab. */
export const sandbox = 'allow-scripts allow-popups allow-popups-to-escape-sandbox';

/** Of this page alone: the other pages of the service are in nobody's frame. */
export const embedHeaders = (public_url: string): Readonly<Record<string, string>> => {
  const { host, origin } = new URL(public_url);
  return {
    'Content-Security-Policy': [
      "default-src 'none'",
      `script-src ${hashOf(embed_script)}`,
      `style-src ${hashOf(embed_style)}`,
      // In a sandbox 'self' may be nothing, and older browsers do not take it for a websocket.
      `connect-src 'self' ${origin} ws://${host} wss://${host}`,
      "base-uri 'none'",
      "form-action 'none'",
      'frame-ancestors *',
    ].join('; '),
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Resource-Policy': 'cross-origin',
  };
};

interface Shell {
  readonly title: string;
  /** A class of the page, for its style. */
  readonly look: string;
  readonly theme: Theme;
  readonly main: string;
  /** Address of its oEmbed; absent from a page that shows nothing and does not change. */
  readonly oembed_url?: string;
}

/** Written so that it is XML, too: a strict parser can then tell that no text became an element. */
export const shellOf = ({ title, look, theme, main, oembed_url }: Shell): string => {
  const name = escapeHtml(plainLine(title));
  const is_live = oembed_url !== undefined;
  const oembed = is_live
    ? `<link rel="alternate" type="application/json+oembed" href="${escapeHtml(oembed_url)}" title="${name}"/>\n`
    : '';
  const live = `<p id="say" class="sr" role="status" aria-live="polite"></p>
<script>${embed_script}</script>
`;
  return `<!DOCTYPE html>
<html lang="en" dir="ltr" data-theme="${theme}" class="${look}">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="robots" content="noindex"/>
${oembed}<title>${name} · Prediction Forum</title>
<style>${embed_style}</style>
</head>
<body>
${main}
${is_live ? live : ''}</body>
</html>
`;
};

/** A link out of the widget, which opens a page of its own. */
export const linkTo = (href: string, text: string, title = ''): string => {
  const whole = title === '' ? '' : ` title="${escapeHtml(title)}"`;
  return `<a href="${escapeHtml(href)}"${whole} target="_blank" rel="noopener">${escapeHtml(text)}</a>`;
};

/** A refusal in place of a widget: small, and in the frame of the other page as the widget would be. */
export const refuseWidget = ({ def, message, headers }: Fault, public_url: string): Reply => {
  const main = `<main class="gone"><h1>The forecast cannot be shown right now</h1>
<p>${escapeHtml(message)}</p></main>`;
  const title = 'No forecast right now';
  return {
    ...replyRaw(
      'text/html; charset=utf-8',
      shellOf({ title, look: 'compact', theme: 'auto', main }),
      { ...embedHeaders(public_url), ...headers, 'Cache-Control': 'no-store' },
    ),
    status: def.status,
  };
};
