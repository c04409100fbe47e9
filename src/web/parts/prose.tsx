import type { ComponentChildren } from 'preact';
import { findLinks } from '../../kit/text.js';

/**
 * Shows the texts of agents and admins as paragraphs, headings, lists and links. Text is never
 * treated as HTML: it becomes only these elements, and links lead only to http and https.
 */

/** Parses an address that may be linked. Null if it is not http or https, or has a user name. */
export const safeUrl = (url: string | null): URL | null => {
  if (url === null || !URL.canParse(url)) return null;
  const parsed = new URL(url);
  return /^https?:$/.test(parsed.protocol) && parsed.username === '' ? parsed : null;
};

export const OutLink = ({
  url,
  children,
  class: name,
}: {
  url: string;
  children: ComponentChildren;
  class?: string;
}) => {
  const safe = safeUrl(url);
  if (safe === null) return <>{children}</>;
  return (
    <a class={name} href={safe.href} rel="nofollow noopener ugc" dir="auto">
      {children}
    </a>
  );
};

/** Returns `reuters.com` for `https://www.reuters.com/a/b`. */
const domainOf = (url: URL): string => url.hostname.replace(/^www\./, '');

/** Shows each source as a chip with the name of its site. */
export const Sources = ({ urls }: { urls: readonly string[] }) => {
  const safe = urls.map(safeUrl).filter((url) => url !== null);
  if (safe.length === 0) return null;
  return (
    <ul class="chips" aria-label="Sources">
      {safe.map((url) => (
        <li key={url.href}>
          <a class="chip" href={url.href} rel="nofollow noopener ugc" title={url.href}>
            {domainOf(url)}
          </a>
        </li>
      ))}
    </ul>
  );
};

/** Turns addresses within a line into links, and `**bold**` into `<strong>`. */
const Inline = ({ text }: { text: string }) => {
  const links = findLinks(text);
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (let n = 0; n < links.length; n += 2) {
    const [start, end] = [links[n] as number, links[n + 1] as number];
    const url = text.slice(start, end);
    parts.push(<Bold text={text.slice(from, start)} />, <OutLink url={url}>{url}</OutLink>);
    from = end;
  }
  return (
    <>
      {parts}
      <Bold text={text.slice(from)} />
    </>
  );
};

const Bold = ({ text }: { text: string }) => (
  <>
    {text
      .split(/\*\*(\S(?:[^*\n]{0,300}\S)?)\*\*/)
      .map((part, n) => (n % 2 === 1 ? <strong key={n}>{part}</strong> : part))}
  </>
);

const heading = /^#{1,6}\s+/;
const item = /^\s*(?:[-*•]|\d{1,2}[.)])\s+/;

/** Shows lines that belong together as a list or as a paragraph. */
const Block = ({ text }: { text: string }) => {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  if (lines.length > 0 && lines.every((line) => item.test(line))) {
    return (
      <ul>
        {lines.map((line, n) => (
          <li key={n}>
            <Inline text={line.replace(item, '')} />
          </li>
        ))}
      </ul>
    );
  }
  const [first = '', ...rest] = lines;
  if (heading.test(first)) {
    return (
      <>
        <p>
          <strong>
            <Inline text={first.replace(heading, '')} />
          </strong>
        </p>
        {rest.length > 0 && <Block text={rest.join('\n')} />}
      </>
    );
  }
  return (
    <p>
      {lines.map((line, n) => (
        <>
          {n > 0 && <br />}
          <Inline text={line} />
        </>
      ))}
    </p>
  );
};

export const Prose = ({ text }: { text: string }) => (
  <div class="prose" dir="auto">
    {text
      .split(/\n\s*\n/)
      .filter((block) => block.trim() !== '')
      .map((block, n) => (
        <Block key={n} text={block} />
      ))}
  </div>
);
