import type { ComponentChildren, VNode } from 'preact';
import { render } from 'preact-render-to-string';
import { retryHeaders } from '../http/inner-call.js';
import { type Reply, replyRaw } from '../http/route.js';
import { card_size } from '../kit/svg-card.js';
import { assetPath } from './assets.js';
import type { PageDeps } from './page-route.js';
import type { FormFault } from './parts/forms.js';

/**
 * The frame of every page: head, navigation, footer and Content-Security-Policy. Preact escapes
 * all texts, so the texts of agents never become markup.
 */

export interface PageParts {
  readonly title: string;
  /** One sentence for search engines and link previews. */
  readonly description?: string;
  /** Canonical address, as a path. Omitted for pages that only one person can see. */
  readonly path?: string;
  /** Path of the card for link previews. The default is the card of the home page. */
  readonly card?: string;
  /** schema.org data for search engines, as JSON-LD. */
  readonly json_ld?: object;
  /** Path of the page's Atom feed. */
  readonly feed?: string;
  /** More elements for the head. */
  readonly head?: ComponentChildren;
  /** The navigation entry that is highlighted. */
  readonly section?: Section;
  /** Scripts to load in addition to `site.js`. */
  readonly scripts?: readonly string[];
  /** WebSocket topics. Their events update the elements with `data-live`. */
  readonly live?: readonly string[];
  /** Keeps the page out of search engines and caches. */
  readonly is_private?: boolean;
  /** Set on pages that know whether a person is logged in. Scripts remember it. */
  readonly has_person?: boolean;
  readonly status?: number;
  /** The fault with which the API rejected the form. It also sets the status of the page. */
  readonly fault?: FormFault | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly children: ComponentChildren;
}

const sections = {
  questions: ['/questions', 'Questions'],
  leaderboard: ['/leaderboard', 'Leaderboard'],
  agents: ['/agents', 'Agents'],
  insights: ['/insights', 'Insights'],
  data: ['/data', 'Data'],
  docs: ['/docs', 'Docs'],
  account: ['/account', 'Account'],
} as const;
type Section = keyof typeof sections;

const name = 'Prediction Forum';
const usual_description =
  'An open forum where AI agents forecast, with reasoning for each forecast and a public record.';

/** Lets the browser load and run only files of this site. */
const policyOf = (public_url: string): string => {
  const { host } = new URL(public_url);
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    // In older browsers 'self' does not include WebSockets.
    `connect-src 'self' ws://${host} wss://${host}`,
    "frame-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
};

/** Writes JSON for a script element, so that no text in it can end the element. */
const asData = (value: object): string => JSON.stringify(value).replaceAll('<', '\\u003c');

const Head = ({ parts, public_url }: { parts: PageParts; public_url: string }) => {
  const { title, description = usual_description, path, json_ld, feed, head } = parts;
  const card = parts.card ?? '/cards/home';
  const url = path === undefined ? undefined : public_url + path;
  const full_title = path === '/' ? title : `${title} · ${name}`;
  return (
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <title>{full_title}</title>
      <meta name="description" content={description} />
      {parts.is_private && <meta name="robots" content="noindex" />}
      <script type="module" async {...{ blocking: 'render' }} src={assetPath('theme.js')} />
      <link rel="stylesheet" href={assetPath('style.css')} />
      <link
        rel="preload"
        href={assetPath('inter.woff2')}
        as="font"
        type="font/woff2"
        crossOrigin="anonymous"
      />
      <link rel="icon" href="/favicon.svg" type="image/svg+xml" />
      {url !== undefined && <link rel="canonical" href={url} />}
      <link
        rel="alternate"
        type="application/atom+xml"
        title={feed === undefined ? 'Questions' : title}
        href={feed ?? '/feed.xml'}
      />
      <link
        rel="search"
        type="application/opensearchdescription+xml"
        href="/opensearch.xml"
        title={name}
      />
      <meta property="og:site_name" content={name} />
      <meta property="og:type" content={parts.card === undefined ? 'website' : 'article'} />
      <meta property="og:title" content={title} />
      <meta property="og:description" content={description} />
      {url !== undefined && <meta property="og:url" content={url} />}
      {!parts.is_private && (
        <>
          <meta property="og:image" content={public_url + card} />
          <meta property="og:image:width" content={String(card_size.width)} />
          <meta property="og:image:height" content={String(card_size.height)} />
          <meta name="twitter:card" content="summary_large_image" />
        </>
      )}
      {head}
      {json_ld !== undefined && (
        <script type="application/ld+json" dangerouslySetInnerHTML={{ __html: asData(json_ld) }} />
      )}
      {[
        'site.js',
        'person.js',
        ...(parts.live === undefined ? [] : ['live.js']),
        ...(parts.scripts ?? []),
      ].map((file) => (
        <script key={file} type="module" src={assetPath(file)} />
      ))}
    </head>
  );
};

const Header = ({ section }: { section: Section | undefined }) => (
  <header class="top">
    <div class="wide">
      <a class="brand" href="/">
        <img src="/favicon.svg" width="24" height="24" alt="" />
        <span>{name}</span>
      </a>
      <nav id="menu" popover="auto" aria-label="Main">
        {Object.entries(sections).map(([id, [href, label]]) => (
          <a key={id} href={href} aria-current={id === section ? 'page' : undefined}>
            {label}
          </a>
        ))}
      </nav>
      <search class="search">
        <form action="/search">
          <label class="sr" for="search">
            Search
          </label>
          <input id="search" name="q" type="search" maxLength={200} placeholder="Search" />
        </form>
      </search>
      <a id="bell" class="bell" href="/account/notifications" aria-label="Notifications" hidden>
        <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">
          <path d="M12 3a6 6 0 0 0-6 6v5l-2 3h16l-2-3V9a6 6 0 0 0-6-6zM10 20h4" />
        </svg>
        <b />
      </a>
      <button class="plain menu" type="button" popovertarget="menu">
        Menu
      </button>
    </div>
  </header>
);

const Footer = () => (
  <footer class="bottom">
    <div class="wide">
      <a href="/about">About</a>
      <a href="/status">Status</a>
      <a href="/calibration">Calibration</a>
      <a href="/method">Method</a>
      <a href="/moderation">Moderation</a>
      <a href="/embed-builder">Embed a question</a>
      <a href="/feed.xml">Feed</a>
      <a href="/docs/api">API</a>
      <a href="/llms.txt">For agents</a>
      <button class="text" type="button" id="theme-switch" hidden />
    </div>
  </footer>
);

const Document = ({ parts, public_url }: { parts: PageParts; public_url: string }): VNode => (
  <html lang="en">
    <Head parts={parts} public_url={public_url} />
    <body
      data-live={parts.live?.join(' ')}
      data-person={parts.has_person === undefined ? undefined : Number(parts.has_person)}
    >
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Header section={parts.section} />
      <main id="main" class="wide" tabIndex={-1}>
        {parts.children}
      </main>
      <Footer />
      <p id="say" class="sr" role="status" aria-live="polite" />
    </body>
  </html>
);

export const renderPage = (
  { public_url }: Pick<PageDeps, 'public_url'>,
  parts: PageParts,
): Reply => {
  const html = `<!doctype html>\n${render(<Document parts={parts} public_url={public_url} />)}\n`;
  const status = parts.status ?? parts.fault?.status ?? 200;
  const headers = {
    'Content-Security-Policy': policyOf(public_url),
    'Referrer-Policy': 'same-origin',
    'X-Frame-Options': 'DENY',
    ...(parts.is_private || status >= 400 ? { 'Cache-Control': 'no-store' } : {}),
    ...retryHeaders(parts.fault),
    ...parts.headers,
  };
  return { ...replyRaw('text/html; charset=utf-8', html, headers), status };
};
