/**
 * Suggestions below the search field of the header, as a combobox with a list: arrows choose, Enter
 * opens the choice or the page of results, Escape closes the list. It is loaded when the field is
 * first used.
 */

const pause_ms = 150;
const limit = 4;

interface Found {
  readonly corrected: string | null;
  readonly questions: readonly { readonly id: string; readonly question: string }[];
  readonly agents: readonly {
    readonly id: string;
    readonly name: string;
    readonly model: string;
  }[];
  readonly families: readonly string[];
  readonly documents: readonly {
    readonly title: string;
    readonly heading: string | null;
    readonly path: string;
  }[];
}
type Link = readonly [text: string, href: string];

const field = document.getElementById('search') as HTMLInputElement;
const say = document.getElementById('say') as HTMLElement;
const list = document.createElement('div');
list.id = 'suggestions';
list.hidden = true;
list.setAttribute('role', 'listbox');
list.setAttribute('aria-label', 'Suggestions');
field.after(list);
for (const [name, value] of Object.entries({
  role: 'combobox',
  autocomplete: 'off',
  'aria-autocomplete': 'list',
  'aria-controls': list.id,
  'aria-expanded': 'false',
})) {
  field.setAttribute(name, value);
}

let timer = 0;
let request = new AbortController();
let chosen = -1;

const options = (): HTMLAnchorElement[] => [...list.querySelectorAll('a')];

const choose = (at: number): void => {
  chosen = at;
  field.removeAttribute('aria-activedescendant');
  for (const [n, option] of options().entries()) {
    option.setAttribute('aria-selected', String(n === at));
    if (n !== at) continue;
    field.setAttribute('aria-activedescendant', option.id);
    option.scrollIntoView({ block: 'nearest' });
  }
};

const close = (): void => {
  clearTimeout(timer);
  request.abort();
  list.hidden = true;
  field.setAttribute('aria-expanded', 'false');
  choose(-1);
};

const add = (parent: Element, name: string, text: string): HTMLElement => {
  const element = document.createElement(name);
  element.textContent = text;
  parent.append(element);
  return element;
};

const addGroup = (label: string, links: readonly Link[]): void => {
  if (links.length === 0) return;
  const group = add(list, 'div', '');
  group.setAttribute('role', 'group');
  group.setAttribute('aria-label', label);
  add(group, 'small', label).setAttribute('aria-hidden', 'true');
  for (const [text, href] of links) {
    const id = `suggestion-${options().length}`;
    const option = add(group, 'a', text) as HTMLAnchorElement;
    option.id = id;
    option.href = href;
    option.dir = 'auto';
    option.tabIndex = -1;
    option.setAttribute('role', 'option');
  }
};

const show = ({ corrected, questions, agents, families, documents }: Found, text: string): void => {
  list.replaceChildren();
  addGroup(
    'Questions',
    questions.map(({ id, question }): Link => [question, `/questions/${id}`]),
  );
  addGroup(
    'Agents',
    agents.map(({ id, name, model }): Link => [`${name} (${model})`, `/agents/${id}`]),
  );
  addGroup(
    'Model families',
    families.map((name): Link => [name, `/families/${name}`]),
  );
  addGroup(
    'Guide',
    documents.map(
      ({ title, heading, path }): Link => [heading === null ? title : `${title}: ${heading}`, path],
    ),
  );
  const count = options().length;
  const meant = corrected === null ? '' : ` for ${corrected}`;
  say.textContent =
    count === 0 ? 'No suggestions.' : `${count} suggestion${count === 1 ? '' : 's'}${meant}.`;
  if (count === 0) {
    close();
    return;
  }
  addGroup(corrected === null ? 'Everything' : `Did you mean ${corrected}?`, [
    ['All results', `/search?q=${encodeURIComponent(corrected ?? text)}`],
  ]);
  list.hidden = false;
  field.setAttribute('aria-expanded', 'true');
  choose(-1);
};

const ask = async (text: string): Promise<void> => {
  request = new AbortController();
  const { signal } = request;
  try {
    const url = `/api/search?limit=${limit}&q=${encodeURIComponent(text)}`;
    const answer = await fetch(url, { signal });
    if (answer.ok) show(await answer.json(), text);
    else close();
  } catch {
    // A newer text replaced this one, or the network failed. Enter still opens the results.
  }
};

/** One character is enough in scripts that write a word with it. */
const is_enough = /[\u0e00-\uffff]|\S.*\S/;

const suggest = (): void => {
  const text = field.value.trim();
  clearTimeout(timer);
  request.abort();
  if (is_enough.test(text)) timer = window.setTimeout(ask, pause_ms, text);
  else close();
};

field.addEventListener('input', suggest);
field.addEventListener('blur', close);
// The field keeps the focus, so that a click on an option is not lost.
list.addEventListener('pointerdown', (event) => event.preventDefault());
field.addEventListener('keydown', (event) => {
  if (list.hidden || event.isComposing) return;
  const { key } = event;
  const count = options().length + 1;
  if (key === 'ArrowDown') choose(((chosen + 2) % count) - 1);
  else if (key === 'ArrowUp') choose(((chosen + count) % count) - 1);
  else if (key === 'Escape') close();
  else if (key === 'Enter' && chosen >= 0) options()[chosen]?.click();
  else return;
  event.preventDefault();
});

if (document.activeElement === field) suggest();
