import { dress } from './site.js';

/**
 * Keeps an open page up to date. The page lists its topics in the `data-live` attribute of its
 * body. After an event on a topic, the script fetches the page again and replaces the `data-live`
 * elements that changed. It does not replace elements that contain the focus or that the reader has
 * paused (`data-paused`).
 *
 *   socket ──event or new state──▶ fetch the page soon, then at most once every `again_ms`
 *     └── closed ──▶ connect again later, then fetch the page to catch up
 */

const again_ms = 800;
const late_ms = 700;
const hidden_ms = 60_000;

const topics = (document.body.dataset['live'] ?? '').split(' ').filter((topic) => topic !== '');
const shown = new Map<string, string>();
let socket: WebSocket | null = null;
let tries = 0;
let timer = 0;
let fetched_at = 0;

/** Shown beside the headline: the updates come, will come again, or wait for the reader to return. */
type State = 'live' | 'reconnecting' | 'paused';
const states: readonly State[] = ['live', 'reconnecting', 'paused'];
const show = (state: State): void => {
  for (const one of states) document.documentElement.classList.toggle(one, one === state);
};

const liveIn = (root: ParentNode): HTMLElement[] => [
  ...root.querySelectorAll<HTMLElement>('[data-live]:not(body)'),
];

/** The HTML as the server sent it, so that changes made by other scripts are ignored. */
for (const one of liveIn(document)) shown.set(one.dataset['live'] ?? '', one.outerHTML);

/** Opens the `<details>` of the new element that were open in the old one. */
const keepOpen = (old: HTMLElement, fresh: HTMLElement): void => {
  for (const details of old.querySelectorAll<HTMLDetailsElement>('details[open][id]')) {
    const same = fresh.querySelector<HTMLDetailsElement>(`#${CSS.escape(details.id)}`);
    if (same !== null) same.open = true;
  }
};

/** Replaces the live elements that differ. Returns true if any element was replaced. */
const renew = (page: Document): boolean => {
  let has_changed = false;
  const fresh = new Map(liveIn(page).map((one) => [one.dataset['live'] ?? '', one]));
  for (const old of liveIn(document)) {
    const name = old.dataset['live'] ?? '';
    const next = fresh.get(name);
    if (next === undefined) continue;
    if (old.contains(document.activeElement) || old.closest('[data-paused]') !== null) continue;
    const taken = document.adoptNode(next);
    dress(taken);
    const html = taken.outerHTML;
    if (html === shown.get(name)) continue;
    shown.set(name, html);
    has_changed = true;
    if (name === 'hero') announceSoon();
    keepOpen(old, taken);
    taken.classList.add('fresh');
    old.replaceWith(taken);
    document.dispatchEvent(new CustomEvent('renewed', { detail: taken }));
  }
  return has_changed;
};

const headlineText = (): string =>
  (document.querySelector('.hero .figure')?.textContent ?? '').replaceAll(/\s+/g, ' ').trim();

const announce_ms = 10_000;
let announced = headlineText();
let announced_at = 0;
let announcing = 0;

/** Tells screen readers the new headline, at most once every `announce_ms`. */
const announceSoon = (): void => {
  if (announcing !== 0) return;
  announcing = window.setTimeout(
    () => {
      announcing = 0;
      const [text, place] = [headlineText(), document.getElementById('say')];
      if (text === announced || place === null) return;
      announced = text;
      announced_at = Date.now();
      place.textContent = text;
    },
    Math.max(0, announced_at + announce_ms - Date.now()),
  );
};

const fetchPage = async (is_repeat: boolean): Promise<void> => {
  timer = 0;
  if (document.hidden) return;
  fetched_at = Date.now();
  try {
    const answer = await fetch(location.href, {
      cache: 'no-cache',
      headers: { accept: 'text/html' },
    });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    // If nothing changed, the server process may not have seen the event yet. Tries once more.
    if (!renew(page) && !is_repeat) wait(late_ms, true);
  } catch {
    // The next event triggers another attempt.
  }
};

const wait = (ms: number, is_repeat = false): void => {
  if (timer === 0) timer = window.setTimeout(fetchPage, ms, is_repeat);
};
const renewSoon = (): void =>
  wait(Math.max(50 + Math.random() * 150, fetched_at + again_ms - Date.now()));

const connect = (): void => {
  if (socket !== null || document.hidden) return;
  const mine = new WebSocket(
    `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/ws`,
  );
  socket = mine;
  mine.onopen = () => {
    mine.send(JSON.stringify({ op: 'subscribe', topics }));
    if (tries > 0) renewSoon();
    tries = 0;
    show('live');
  };
  mine.onmessage = ({ data }) => {
    const { op } = JSON.parse(String(data)) as { op: string };
    if (op === 'event' || op === 'delta') renewSoon();
  };
  mine.onclose = () => {
    if (socket !== mine) return;
    socket = null;
    show(document.hidden ? 'paused' : 'reconnecting');
    tries += 1;
    setTimeout(connect, Math.min(60_000, 500 * 2 ** tries) * (0.5 + Math.random() / 2));
  };
};

let leaving = 0;
document.addEventListener('visibilitychange', () => {
  window.clearTimeout(leaving);
  if (document.hidden) leaving = window.setTimeout(() => socket?.close(), hidden_ms);
  else {
    renewSoon();
    connect();
  }
});

/** A button with `data-pause` pauses or resumes updates of the element that it names. */
for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-pause]')) {
  button.hidden = false;
  button.addEventListener('click', () => {
    const place = document.getElementById(button.dataset['pause'] ?? '');
    const is_paused = place?.toggleAttribute('data-paused') === true;
    button.setAttribute('aria-pressed', String(is_paused));
    button.textContent = is_paused ? 'Resume' : 'Pause';
    if (!is_paused) renewSoon();
  });
}

if (topics.length > 0) connect();
