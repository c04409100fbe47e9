/**
 * Browser code of the widget, as text, because it runs in the iframe and not in the service. After
 * a change it loads the page again and replaces `main`. It draws nothing itself.
 *
 *   socket ──consensus, status or board changed──▶ load the page, at most once every `again_ms`
 *     │
 *     └── no socket, or no topic ──▶ load the page every `poll_ms` (304 if it did not change)
 *
 * The host page gets only one kind of message: the height of the widget.
 */
export const embed_script = `
'use strict';
(() => {
const main = () => document.querySelector('main');
const { id, topic } = main().dataset;
// A response may be one second old. Only for a question does a version reveal this.
const soon_ms = id ? 300 : 1500, again_ms = 3000, poll_ms = 30000, say_ms = 15000, hidden_ms = 60000;
const root = document.documentElement;
const base = location.pathname.replace(/\\/embed\\/.*$/, '');
const links = () => [...main().querySelectorAll('a')];
const version = () => Number(main().dataset.version);
// A leaderboard has no versions: every delta counts, and the page already shows the snapshot.
const isNewer = ({ op, version: other }) => id ? other > version() : op === 'delta';
const figure = () => document.querySelector('.figure')?.textContent;
let socket = null, tries = 0, wanted = 0, loaded_at = 0, said = figure(), said_at = Date.now();
let again = 0, retry = 0, leaving = 0;

const tell = () => {
  // Before the frame has its width, lines break in other places.
  if (innerWidth === 0) return;
  const height = Math.ceil(document.body.getBoundingClientRect().height);
  parent.postMessage({ type: 'prediction-forum:height', question_id: id, height }, '*');
};
if (parent !== window) {
  new ResizeObserver(tell).observe(document.body);
  tell();
}

const say = () => {
  if (figure() === said || Date.now() - said_at < say_ms) return;
  said = figure();
  said_at = Date.now();
  document.getElementById('say').textContent = main().dataset.say;
};

const reload = async () => {
  again = 0;
  if (document.hidden) return;
  loaded_at = Date.now();
  try {
    const answer = await fetch(location.href, { credentials: 'omit' });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const other = page.querySelector('main');
    if (other?.dataset.id !== id) return;
    if (other.outerHTML !== main().outerHTML) {
      const focused = links().indexOf(document.activeElement);
      main().replaceWith(document.adoptNode(other));
      links()[focused]?.focus({ preventScroll: true });
    }
    say();
    // The process that answered does not have the wanted version yet.
    if (version() < wanted) reloadSoon();
  } catch { /* A later reload tries again. */ }
};
const reloadIn = (ms) => {
  if (again === 0) again = setTimeout(reload, ms * (0.75 + Math.random() / 2));
};
const reloadSoon = () => reloadIn(Math.max(soon_ms, loaded_at + again_ms - Date.now()));

const connect = () => {
  retry = 0;
  if (!topic || socket !== null || document.hidden) return;
  const scheme = location.protocol === 'https:' ? 'wss://' : 'ws://';
  let mine;
  try { mine = new WebSocket(scheme + location.host + base + '/ws'); } catch { return later(); }
  socket = mine;
  mine.onopen = () => {
    mine.send(JSON.stringify({ op: 'subscribe', topics: [topic] }));
    if (id) mine.send(JSON.stringify({ op: 'subscribe', topics: ['question:' + id],
      filter: { events: ['question.closed', 'question.resolved'] } }));
  };
  mine.onmessage = ({ data }) => {
    const frame = JSON.parse(data);
    if (frame.topic === topic && (frame.op === 'snapshot' || frame.op === 'delta')) {
      tries = 0;
      root.classList.add('live');
      if (id) wanted = frame.version;
      if (isNewer(frame)) reloadSoon();
    } else if (frame.op === 'event') {
      clearTimeout(again);
      again = 0;
      reloadIn(1000);
    }
  };
  mine.onclose = () => {
    if (socket !== mine) return;
    socket = null;
    root.classList.remove('live');
    later();
  };
};
const later = () => {
  if (retry !== 0) return;
  tries += 1;
  retry = setTimeout(connect, Math.min(60000, 500 * 2 ** tries) * (0.5 + Math.random() / 2));
};

document.addEventListener('visibilitychange', () => {
  clearTimeout(leaving);
  if (document.hidden) leaving = setTimeout(() => socket?.close(), hidden_ms);
  else {
    reloadIn(0);
    if (socket === null && retry === 0) connect();
  }
});
let beats = 0;
setInterval(() => {
  beats += 1;
  if (!root.classList.contains('live') || beats % 4 === 0) reloadIn(1000);
}, poll_ms);
connect();
})();
`;
