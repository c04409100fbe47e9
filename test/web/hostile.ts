import type { TestApp } from '../help/app.js';
import type { BrowserPage } from '../help/browser.js';
import { hostile_markdown } from '../help/hostile-markdown.js';
import { hostile_addresses, hostile_texts, pwned_mark } from '../help/hostile-texts.js';

/** Texts that try to become markup, in every place where agents and people may write. */

const storable = (text: string): boolean => !text.includes('\u0000');
const texts = [...hostile_texts, ...hostile_markdown].filter(storable);
/** The texts that are short enough to be passed in a URL. */
export const asked = hostile_texts.filter((text) => text.length <= 120);

/**
 * Writes the texts directly into every kind of row, bypassing all checks. Each row gets different
 * texts.
 */
export const makeHostile = async ({ sql }: TestApp): Promise<void> => {
  let used = 0;
  const next = (most: number): string => {
    used += 1;
    // Long texts lose their start, because the tests look for the last words.
    return `${texts[used % texts.length]}, as somebody wrote.`.slice(-most);
  };
  const address = (): string => {
    used += 1;
    return hostile_addresses[used % hostile_addresses.length] ?? '';
  };
  for (const { id, options } of await sql<{ id: string; options: string[] }[]>`
    select id, options from questions order by id`) {
    await sql`
      update questions
      set
        question = ${next(500)}, description = ${next(10_000)}, options = ${options.map(() => next(100))},
        resolution_source = ${next(500)}, resolution_url = ${address()},
        resolution_note = ${next(5_000)}
      where id = ${id}`;
  }
  for (const { id } of await sql<{ id: string }[]>`select id from agents order by id`) {
    await sql`
      update agents
      set
        name = ${next(50)}, model = ${next(100)}, bio = ${next(500)},
        domain_focus = ${next(500)}, philosophy = ${next(280)}
      where id = ${id}`;
  }
  for (const { id } of await sql<{ id: string }[]>`
    select id from predictions order by id`) {
    const reasoning = `${next(4_000)} BOTTOM LINE: ${next(4_000)} ${'and so on '.repeat(20)}`;
    await sql`
      update predictions
      set
        reasoning = ${reasoning}, citations = ${[address(), 'https://b.example/']},
        prior_basis = ${next(2_000)}
      where id = ${id}`;
  }
  for (const { id } of await sql<{ id: string }[]>`
    select id from comments order by id`) {
    await sql`update comments set content = ${next(1_000)} where id = ${id}`;
  }
  await sql`update humans set name = ${next(80)}`;
};

/** Elements that no page of the service has. */
const foreign = [
  'script:not([src^="/assets/"]):not([type="application/ld+json"])',
  'link[rel="stylesheet"]:not([href^="/assets/"])',
  'iframe:not([src^="/embed/"])',
  'style, object, embed, base, meta[http-equiv], template, math, marquee, plaintext, xmp, video',
].join(',');

/** Texts that became markup, one line each. */
export const findBroken = ({ evaluate }: BrowserPage): Promise<readonly string[]> =>
  evaluate(`(() => {
    const found = [...document.querySelectorAll(${JSON.stringify(foreign)})].map((one) => one.outerHTML);
    if (document.documentElement.hasAttribute('${pwned_mark}')) found.push('a script ran');
    for (const one of document.querySelectorAll('*')) {
      for (const { name, value } of one.attributes) {
        const is_address = /^(?:href|src|action|formaction|data)$/.test(name);
        const is_wrong = is_address && !/^(?:https?:|data:image\\/|[/?#])/.test(value);
        if (is_wrong || /^(?:on|style$|srcdoc$)/.test(name)) found.push(name + ': ' + value);
      }
      const { host, rel } = one;
      if (one.tagName === 'A' && host !== location.host && !/nofollow/.test(rel)) {
        found.push('followed: ' + one.outerHTML);
      }
    }
    return found;
  })()`);
