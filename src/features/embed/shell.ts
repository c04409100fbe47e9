import { createHash } from 'node:crypto';
import { type Reply, replyRaw } from '../../http/route.js';
import type { Fault } from '../../kit/fault.js';
import { escapeHtml } from '../../kit/html.js';
import { plainLine } from './rules.js';
import type { Theme } from './schema.js';
import { embed_script } from './script.js';
import { embed_style } from './style.js';

/** Shared by all widgets: the page around them and its security headers. */

/** Returns the source expression of an inline style or script for the Content-Security-Policy. */
const hashOf = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** Permissions that the iframe of a widget needs: scripts, and links that open in a new tab. */
export const sandbox = 'allow-scripts allow-popups allow-popups-to-escape-sandbox';

/** Headers of the widgets, which are the only pages that other sites may frame. */
export const embedHeaders = (public_url: string): Readonly<Record<string, string>> => {
  const { host, origin } = new URL(public_url);
  return {
    'Content-Security-Policy': [
      "default-src 'none'",
      `script-src ${hashOf(embed_script)}`,
      `style-src ${hashOf(embed_style)}`,
      // In a sandbox, 'self' may match nothing. In older browsers, it excludes WebSockets.
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
  /** CSS class of the page. */
  readonly look: string;
  readonly theme: Theme;
  readonly main: string;
  /** Address of the oEmbed response. Missing if there is nothing to show or to keep up to date. */
  readonly oembed_url?: string;
}

/** Writes HTML that is also XML, so that a strict parser can check that no text is markup. */
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

/** Writes a link that opens in a new tab, outside the widget. */
export const linkTo = (href: string, text: string, title = ''): string => {
  const whole = title === '' ? '' : ` title="${escapeHtml(title)}"`;
  return `<a href="${escapeHtml(href)}"${whole} target="_blank" rel="noopener">${escapeHtml(text)}</a>`;
};

/** Shows a refusal in place of a widget, in the same small frame on the other site's page. */
export const refuseWidget = ({ def, message, headers }: Fault, public_url: string): Reply => {
  const main = `<main class="gone"><h1>The forecast cannot be shown right now</h1>
<p>${escapeHtml(message)}</p></main>`;
  const title = 'Forecast not available';
  return {
    ...replyRaw(
      'text/html; charset=utf-8',
      shellOf({ title, look: 'compact', theme: 'auto', main }),
      { ...embedHeaders(public_url), ...headers, 'Cache-Control': 'no-store' },
    ),
    status: def.status,
  };
};
