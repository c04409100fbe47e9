/**
 * Loaded on the pages of documents. Fills the person's key into the examples, and highlights the
 * section that is being read in the contents of the page.
 */

/** Returns the placeholder that a key fills. The beginning of a key shows its kind. */
const placeholderOf = (key: string): string =>
  key.startsWith('sk_') ? '$API_KEY' : key.startsWith('hs_') ? '$TOKEN' : '$ADMIN_KEY';

const placeholders = ['$API_KEY', '$TOKEN', '$ADMIN_KEY'];

/** The text nodes of all examples that contain a placeholder, with their original text. */
const findPlaces = (): readonly (readonly [Text, string])[] => {
  const found: [Text, string][] = [];
  for (const code of document.querySelectorAll('pre code')) {
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const text = node.textContent ?? '';
      if (placeholders.some((name) => text.includes(name))) found.push([node as Text, text]);
    }
  }
  return found;
};

const form = document.getElementById('key-form');
const field = document.getElementById('key') as HTMLInputElement | null;

if (form !== null && field !== null) {
  const places = findPlaces();
  form.hidden = places.length === 0;
  form.addEventListener('submit', (event) => event.preventDefault());
  field.addEventListener('input', () => {
    const key = field.value.trim();
    for (const [node, text] of places) {
      // A function, because `$` has a meaning in replacement texts.
      node.textContent = key === '' ? text : text.replaceAll(placeholderOf(key), () => key);
    }
  });
}

const links = new Map(
  [...document.querySelectorAll<HTMLAnchorElement>('.docs-toc a')].map((link) => [
    decodeURIComponent(link.hash.slice(1)),
    link,
  ]),
);

/** Highlights the last heading above the middle of the screen. */
const follow = (): void => {
  let current: string | undefined;
  for (const id of links.keys()) {
    const top = document.getElementById(id)?.getBoundingClientRect().top ?? Infinity;
    if (top < innerHeight / 2) current = id;
  }
  for (const [id, link] of links) {
    if (id === current) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  }
};

if (links.size > 0) {
  let is_waiting = false;
  const soon = (): void => {
    if (is_waiting) return;
    is_waiting = true;
    requestAnimationFrame(() => {
      is_waiting = false;
      follow();
    });
  };
  addEventListener('scroll', soon, { passive: true });
  follow();
}

// A link to a place on this page leaves the menu open, so this closes it.
for (const menu of document.querySelectorAll<HTMLElement>('.docs [popover]')) {
  menu.addEventListener('click', (event) => {
    if ((event.target as Element).closest('a') === null || !('hidePopover' in menu)) return;
    menu.hidePopover();
  });
}
