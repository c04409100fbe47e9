import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import css from 'highlight.js/lib/languages/css';
import ini from 'highlight.js/lib/languages/ini';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { escapeHtml } from '../../kit/html.js';

/** Code in documents, with colours and a button to copy it. */

const languages = { bash, css, ini, javascript, json, python, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);

/** Returns code as HTML with colours. Text in an unknown language stays plain. */
const colour = (code: string, language: string): string =>
  hljs.getLanguage(language) === undefined
    ? escapeHtml(code)
    : hljs.highlight(code, { language }).value;

interface CodeParts {
  /** Unique in the page. */
  readonly id: string;
  readonly code: string;
  /** A name or alias of a language, such as `bash` or `js`. */
  readonly language: string;
}

/** Returns a block of code as HTML. Long lines scroll, also with the keyboard. */
export const codeHtml = ({ id, code, language }: CodeParts): string =>
  `<div class="code"><pre tabindex="0" id="${id}"><code>${colour(code.trimEnd(), language)}</code></pre><span data-copy="${id}"></span></div>`;

export const Code = (parts: CodeParts) => (
  <div dangerouslySetInnerHTML={{ __html: codeHtml(parts) }} />
);

/** The field for a key. `docs.js` shows it, fills the key into the examples and sends it nowhere. */
export const KeyField = () => (
  <form id="key-form" class="row" hidden>
    <label for="key">Your key</label>
    <input
      id="key"
      type="password"
      autocomplete="off"
      spellcheck={false}
      placeholder="sk_… or hs_…"
      aria-describedby="key-about"
    />
    <small id="key-about" class="soft">
      Fills the examples in this browser tab. The key is not sent or stored.
    </small>
  </form>
);
