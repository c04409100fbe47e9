/** Loaded on every page: times in the reader's time zone, buttons to copy and share, theme, and `/` to search. */

/** The style of all dates, in the reader's time zone: `15 Feb 2027, 19:23`. */
const date = { day: 'numeric', month: 'short', year: 'numeric' } as const;
const clock = { hour: '2-digit', minute: '2-digit' } as const;
const shown = (options: Intl.DateTimeFormatOptions) => {
  const format = new Intl.DateTimeFormat('en-GB', options);
  return (at: number | Date): string => format.format(at).replace('Sept', 'Sep');
};
export const dayText = shown(date);
export const clockText = shown(clock);
export const momentText = shown({ ...date, ...clock });
const zonedText = shown({ ...date, ...clock, timeZoneName: 'short' });

const localise = (root: ParentNode): void => {
  for (const time of root.querySelectorAll<HTMLTimeElement>('time[datetime]')) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = zonedText(at);
    if (time.dataset['relative'] !== undefined) continue;
    time.textContent = time.dataset['day'] === undefined ? momentText(at) : dayText(at);
  }
};

/** Adds copy buttons. `data-copy` is the id of the element whose text is copied, `data-label` the text of the button. */
const addCopyButtons = (root: ParentNode): void => {
  for (const place of root.querySelectorAll<HTMLElement>('[data-copy]')) {
    const source = document.getElementById(place.dataset['copy'] ?? '');
    if (source === null || place.childElementCount > 0) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'plain';
    const label = place.dataset['label'] ?? 'Copy';
    button.textContent = label;
    button.addEventListener('click', async () => {
      const text = source instanceof HTMLInputElement ? source.value : (source.textContent ?? '');
      await navigator.clipboard.writeText(text.trim());
      button.textContent = 'Copied';
      say('Copied.');
      setTimeout(() => {
        button.textContent = label;
      }, 2_000);
    });
    place.append(button);
  }
};

/** Adds share buttons, if the device has a menu for sharing. `data-share` is the address. */
const addShareButtons = (root: ParentNode): void => {
  if (!('share' in navigator)) return;
  for (const place of root.querySelectorAll<HTMLElement>('[data-share]')) {
    if (place.childElementCount > 0) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'plain';
    button.textContent = 'Share';
    button.addEventListener('click', () => {
      const shared = { title: document.title, url: place.dataset['share'] ?? location.href };
      // Rejects if the person closes the menu.
      navigator.share(shared).catch(() => undefined);
    });
    place.append(button);
  }
};

/** Announces text to screen readers. */
export const say = (text: string): void => {
  const place = document.getElementById('say');
  if (place !== null) place.textContent = text;
};

/** Prepares a part of the page, including one that another script has inserted. */
export const dress = (root: ParentNode): void => {
  localise(root);
  addCopyButtons(root);
  addShareButtons(root);
};

document.addEventListener('keydown', (event) => {
  const { target, key, ctrlKey, metaKey, altKey } = event;
  if (key !== '/' || ctrlKey || metaKey || altKey) return;
  if (target instanceof HTMLElement && target.closest('input, textarea, select') !== null) return;
  event.preventDefault();
  document.getElementById('search')?.focus();
});

const search_field = document.getElementById('search');
const loadSearch = () => import('./search.js');
search_field?.addEventListener('input', loadSearch, { once: true });

/** The themes and their labels. The empty one follows the system. */
const themes = { '': 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' } as const;
type Theme = keyof typeof themes;

const theme_switch = document.getElementById('theme-switch');
if (theme_switch !== null) {
  const root = document.documentElement;
  const chosen = (): Theme => (root.dataset['theme'] ?? '') as Theme;
  theme_switch.hidden = false;
  theme_switch.textContent = themes[chosen()];
  theme_switch.addEventListener('click', () => {
    const all = Object.keys(themes) as Theme[];
    const next = all[(all.indexOf(chosen()) + 1) % all.length] ?? '';
    root.dataset['theme'] = next;
    theme_switch.textContent = themes[next];
    try {
      localStorage.setItem('theme', next);
    } catch {
      // The browser keeps nothing for this site. The theme lasts until the page is left.
    }
  });
}

dress(document);
