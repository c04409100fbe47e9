import { figure, heading, renderDocsPage } from '../../web/docs-page.js';
import { type Html, html, inline } from '../../web/html.js';
import { example_secret } from './event-examples.js';
import type { Delivery, EventLine, EventReference, FrameLine } from './event-reference.js';
import { memberList } from './reference-page.js';

/** `/docs/events`: every event with its doors, and what is said on the socket. */

const anchorOf = (name: string): string => name.replaceAll(/[^a-z]+/g, '-');

export const printDelivery = ({ headers, body }: Delivery): string =>
  [...headers.map(([name, value]) => `${name}: ${value}`), '', body].join('\n');

/** The check of a signature with what every system has. */
export const verify_sample = ({ headers, body }: Delivery): string => {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp } = Object.fromEntries(headers);
  return `SECRET=${example_secret}
BODY='${body}'
printf '%s' "${id}.${timestamp}.$BODY" | openssl dgst -sha256 -hmac "$SECRET" -binary | base64
# what stands after v1, in webhook-signature`;
};

const eventHtml = ({
  name,
  about,
  data,
  frame,
  delivery,
}: EventLine): Html => html`<article class="op"
id="${anchorOf(name)}" data-words="event ${name} ${about}"><h3><code>${name}</code>
<a class="anchor" href="#${anchorOf(name)}" aria-label="Link to ${name}">#</a></h3>
<p class="what">${inline(about)}</p><div class="pair"><div><h4>Data</h4>${memberList(data)}</div>
<div class="shown"><h4>Example</h4>${figure('Frame on the socket', frame)}${figure(
  'POST to a webhook',
  printDelivery(delivery),
)}</div></div></article>`;

const frameHtml =
  (prefix: string) =>
  ({ op, about, members, example }: FrameLine): Html =>
    html`<article class="op" id="${prefix}-${op}" data-words="frame ${op} ${about}"><h3><code>${op}</code>
<a class="anchor" href="#${prefix}-${op}" aria-label="Link to ${op}">#</a></h3>
<p class="what">${inline(about)}</p><div class="pair"><div>${
      members.length === 0 ? null : memberList(members)
    }</div><div class="shown">${example === null ? null : figure('Frame', example)}</div></div></article>`;

const doors = html`<div class="scroll"><table><thead><tr><th>Door</th><th>Where</th>
<th>Resume</th></tr></thead><tbody>
<tr><td>Websocket</td><td><code>/ws</code></td><td><code>subscribe</code> with <code>after</code></td></tr>
<tr><td>Pages of the log</td><td><a href="/docs#listEvents"><code>GET /api/events</code></a></td>
<td><code>?after=</code>, and <code>wait</code> for the next one</td></tr>
<tr><td>Server-sent events</td><td><a href="/docs#streamEvents"><code>GET /api/stream</code></a></td>
<td><code>Last-Event-ID</code></td></tr>
<tr><td>Webhooks</td><td><a href="/docs/webhooks">an address of yours</a></td>
<td>tried again for days; <a href="/docs#replayWebhook">replay</a></td></tr></tbody></table></div>`;

const introOf = ({ prefix, events }: EventReference): Html => html`<header><h1>Events</h1>
<p class="lead">One log, told at four doors. An event has the same <code>id</code>,
<code>offset</code>, <code>data</code> and <code>timestamp</code> at each of them.</p></header>
<section class="prose">${heading('doors', 'Doors')}${doors}<p>Offsets grow without a gap, so a client
that keeps the last one it has seen misses nothing: it asks for what is behind it. On a topic of the
socket, <code>prev</code> is the offset of the event before, so a hole shows.</p></section>
<section class="prose">${heading('webhook', 'A delivery to a webhook')}<p>A POST whose body is exactly
<code>{"event","data","timestamp"}</code>, the same bytes at every attempt. The key of both signatures
is the secret of the webhook as text, all 64 characters. <code>webhook-signature</code> is
<code>v1,</code> and the base64 of the HMAC-SHA256 of
<code>webhook-id.webhook-timestamp.body</code>, as Standard Webhooks have it;
the older <code>${prefix}-Signature</code> is the hex HMAC-SHA256 of the body alone, which an old
delivery passes as well. Compare in constant time, and
refuse a timestamp older than five minutes. <a href="/docs/webhooks">Receivers in three languages</a>
show it.</p>${events
  .slice(0, 1)
  .map(({ delivery }) => figure('Shell', verify_sample(delivery)))}</section>`;

const topicTable = ({ topics }: EventReference): Html => html`<div class="scroll"><table><thead><tr>
<th>Topic</th><th>What comes</th></tr></thead><tbody>${topics.map(
  ({ name, about }) => html`<tr><td><code>${name}</code></td><td>${inline(about)}</td></tr>`,
)}</tbody></table></div>`;

const closeTable = ({
  closings,
}: EventReference): Html => html`<div class="scroll"><table><thead><tr>
<th>Code</th><th>Name</th><th>What to do</th></tr></thead><tbody>${closings.map(
  ({ code, name, advice }) =>
    html`<tr><td>${code}</td><td><code>${name}</code></td><td>${advice}</td></tr>`,
)}</tbody></table></div>`;

const link = (href: string, text: string): Html =>
  html`<li><a href="${href}"><span>${text}</span></a></li>`;

const contentsOf = ({ events, asked, told }: EventReference): Html => html`<b>Basics</b><ul>
${link('#doors', 'Doors')}${link('#webhook', 'A delivery to a webhook')}</ul>
<div data-head><b>Events</b><ul>${events.map(({ name }) => link(`#${anchorOf(name)}`, name))}</ul></div>
<b>Socket</b><ul>${link('#topics', 'Topics')}${link('#closing', 'Close codes')}</ul>
<div data-head><b>Frames to the service</b><ul>${asked.map(({ op }) => link(`#to-${op}`, op))}</ul></div>
<div data-head><b>Frames from the service</b><ul>${told.map(({ op }) => link(`#from-${op}`, op))}</ul></div>`;

export const renderEvents = (reference: EventReference): string => {
  const { events, asked, told, version } = reference;
  const about = 'Every event of the forum: fields, examples, frames, deliveries and close codes.';
  return renderDocsPage({
    ...{ title: 'Events', path: '/docs/events', about, version },
    contents: contentsOf(reference),
    main: html`${introOf(reference)}
<section data-group="events">${heading('events', 'Events')}<p class="about soft">What each holds in
<code>data</code>, and how it arrives.</p>${events.map(eventHtml)}</section>
<section class="prose">${heading('topics', 'Topics of the socket')}${topicTable(reference)}</section>
<section data-group="asked">${heading('asked', 'Frames to the service')}<p class="about soft">JSON
text, one object a frame, told apart by <code>op</code>. The <code>id</code> is yours, and stands in the
answer.</p>${asked.map(frameHtml('to'))}</section>
<section data-group="told">${heading('told', 'Frames from the service')}<p class="about soft">Beside
the events.</p>${told.map(frameHtml('from'))}</section>
<section class="prose">${heading('closing', 'Close codes')}<p>The code says whether to come
back.</p>${closeTable(reference)}</section>`,
  });
};
