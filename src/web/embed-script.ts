/**
 * Browser code of the widget, as text: it runs in the iframe and not in the service. Figures that
 * move are set as text or as the width of a bar, never as HTML; what else is different then (who
 * is shown, the chart, the status) comes with the page itself, asked for again a little later.
 *
 *   socket ──snapshot, delta──▶ figures at once ──▶ the page again, at most every `again_ms`
 *     │
 *     └── no socket to be had ──▶ the page again every `poll_ms`: a 304 while it is the same
 *
 * The page is told apart by its id only. The host page gets one message, the height of the widget.
 */
export const embed_script = `
'use strict';
(() => {
const again_ms = 10000, poll_ms = 30000, say_ms = 15000, hidden_ms = 60000;
const root = document.documentElement;
const id = root.dataset.id, topic = 'consensus:' + id;
const base = location.pathname.replace(/\\/embed\\/.*$/, '');
const all = (selector) => document.querySelectorAll(selector);
let state = null, version = -1, socket = null, tries = 0, said = '', said_at = Date.now();
let again = 0, retry = 0, leaving = 0;

const tell = () => {
  const height = Math.ceil(document.body.getBoundingClientRect().height);
  parent.postMessage({ type: 'prediction-forum:height', question_id: id, height }, '*');
};
if (parent !== window) {
  new ResizeObserver(tell).observe(document.body);
  tell();
}

const percent = (value) => value === null || value === undefined ? '\\u2013'
  : value > 0 && value < 0.5 ? '<1%' : value < 100 && value >= 99.5 ? '>99%'
  : Math.round(value) + '%';
const count = (value) => value.toLocaleString('en-US');
const months = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const time = (text) => {
  const at = new Date(text);
  return at.getUTCDate() + ' ' + months[at.getUTCMonth()] + ' ' + at.getUTCFullYear() + ', ' +
    text.slice(11, 16) + ' UTC';
};
const text = (value) => value;
const shown = { percent, count, time, text };
const find = (path) => path.split('.').reduce((value, name) => value?.[name], state);

const draw = () => {
  for (const at of all('[data-n]')) {
    const [kind, path] = at.dataset.n.split(':');
    const value = find(path);
    if (value === undefined || (value === null && kind !== 'percent')) continue;
    const now = shown[kind](value);
    if (at.textContent !== now) at.textContent = now;
    if (kind === 'time') at.setAttribute('datetime', value);
  }
  for (const at of all('[data-w]')) at.setAttribute('width', (find(at.dataset.w) ?? 0) + '%');
  const most = Math.max(1, ...state.histogram);
  for (const at of all('[data-h]')) {
    const height = Math.round(360 * state.histogram[at.dataset.h] / most) / 10;
    at.setAttribute('height', height);
    at.setAttribute('y', 36 - height);
  }
};

const say = () => {
  const binary = state.question_type === 'binary';
  const figure = percent(binary ? state.mean_probability : state.forecast);
  if (figure === said || Date.now() - said_at < say_ms || state.total_predictions === 0) return;
  said = figure;
  said_at = Date.now();
  document.getElementById('say').textContent = (binary ? figure + ' chance of Yes'
    : state.leading_option + ' leads with a chance of ' + figure) + ', from ' +
    count(state.total_predictions) + (state.total_predictions === 1 ? ' forecast.' : ' forecasts.');
};

const reload = async () => {
  again = 0;
  if (document.hidden) return;
  const main = document.querySelector('main');
  try {
    const answer = await fetch(location.href, { credentials: 'omit' });
    if (!answer.ok || main.contains(document.activeElement)) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const other = page.querySelector('main');
    if (page.documentElement.dataset.id !== id || !other) return;
    const is_newer = Number(other.dataset.offset) >= version;
    if (other.outerHTML !== main.outerHTML) main.replaceWith(document.adoptNode(other));
    if (state && !is_newer) draw();
  } catch { /* The next one comes. */ }
};
const reloadIn = (ms) => {
  if (again === 0) again = setTimeout(reload, ms * (0.75 + Math.random() / 2));
};

const onState = (frame) => {
  if (frame.op === 'snapshot') state = frame.data;
  else if (state && frame.from === version) {
    state = { ...state, ...frame.set };
  } else {
    socket.send(JSON.stringify({ op: 'unsubscribe', topics: [topic] }));
    socket.send(JSON.stringify({ op: 'subscribe', topics: [topic] }));
    return;
  }
  const is_first = version === -1 && frame.version === Number(
    document.querySelector('main').dataset.offset);
  version = frame.version;
  if (said === '') said = percent(state.question_type === 'binary'
    ? state.mean_probability : state.forecast);
  if (is_first) return;
  draw();
  say();
  reloadIn(state.total_predictions > 0 && !document.querySelector('.figure') ? 200 : again_ms);
};

const connect = () => {
  retry = 0;
  if (socket !== null || document.hidden) return;
  const scheme = location.protocol === 'https:' ? 'wss://' : 'ws://';
  let mine;
  try { mine = new WebSocket(scheme + location.host + base + '/ws'); } catch { return later(); }
  socket = mine;
  mine.onopen = () => {
    mine.send(JSON.stringify({ op: 'subscribe', topics: [topic] }));
    mine.send(JSON.stringify({ op: 'subscribe', topics: ['question:' + id],
      filter: { events: ['question.closed', 'question.resolved'] } }));
  };
  mine.onmessage = ({ data }) => {
    const frame = JSON.parse(data);
    if (frame.topic === topic && (frame.op === 'snapshot' || frame.op === 'delta')) {
      tries = 0;
      root.classList.add('live');
      onState(frame);
    } else if (frame.op === 'event') {
      clearTimeout(again);
      again = 0;
      reloadIn(1000);
    }
  };
  mine.onclose = () => {
    if (socket !== mine) return;
    socket = null;
    version = -1;
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
