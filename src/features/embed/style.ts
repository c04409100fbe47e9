import { pageRules } from '../../kit/svg.js';

/**
 * The style of the widget. In the light and the dark theme, text has a contrast of at least 4.5
 * with its background, and charts have at least 3. No element has a `style` attribute, because the
 * Content-Security-Policy allows only this stylesheet.
 */
const light = `color-scheme: light; --ink: #16191d; --soft: #57606a; --paper: #fff; --line: #d8dde3;
  --yes: #0b5cad; --no: #b4530f; --rest: #e6eaef; --good: #116329; --bad: #a40e26;`;
const dark = `color-scheme: dark; --ink: #eceff3; --soft: #a3adb8; --paper: #16191d; --line: #39414a;
  --yes: #6cb2ff; --no: #f0a060; --rest: #2b323a; --good: #6bd688; --bad: #ff8f9c;`;

export const embed_style = `
:root { ${light} }
:root[data-theme=dark] { ${dark} }
@media (prefers-color-scheme: dark) { :root[data-theme=auto] { ${dark} } }
* { box-sizing: border-box; }
html { background: var(--paper); }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  -webkit-text-size-adjust: 100%; }
main { border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px 12px;
  overflow: hidden; overflow-wrap: anywhere; }
p, h1, ul, dl, dd, dt { margin: 0; padding: 0; }
.status { display: flex; flex-wrap: wrap; gap: 2px 8px; font-size: 12px; color: var(--soft);
  align-items: baseline; }
.pill { font-weight: 700; color: var(--ink); }
.pill::before { content: ""; display: inline-block; width: 8px; height: 8px; border-radius: 50%;
  margin-inline-end: 6px; background: var(--soft); }
.open .pill::before { background: var(--good); }
.live .open .pill::before { box-shadow: 0 0 0 3px color-mix(in srgb, var(--good) 25%, transparent); }
.status > span, time { white-space: nowrap; }
.resolved .pill::before { border-radius: 2px; }
.voided .pill { color: var(--bad); }
.voided .pill::before { background: var(--bad); border-radius: 2px; }
h1 { font-size: 18px; line-height: 1.3; font-weight: 650; margin: 6px 0 10px;
  unicode-bidi: isolate; text-wrap: pretty; overflow: hidden; display: -webkit-box;
  -webkit-box-orient: vertical; -webkit-line-clamp: 4; }
h1 a { text-decoration: none; }
h1 a:hover { text-decoration: underline; }
h1:has(:focus-visible) { outline: 2px solid var(--yes); outline-offset: 2px; border-radius: 2px; }
.lead { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 8px; margin-bottom: 6px; }
.figure { font-size: 40px; line-height: 1.1; font-weight: 700; letter-spacing: -.02em;
  font-variant-numeric: tabular-nums; color: var(--yes); }
.figure.words { font-size: 26px; line-height: 1.2; letter-spacing: 0; }
.resolved .figure { color: var(--ink); }
.resolved.binary .figure { color: var(--yes); }
.resolved .figure.not { color: var(--no); }
.said, .verdict { color: var(--soft); }
.verdict { margin-bottom: 8px; }
.right { color: var(--good); }
.wrong { color: var(--bad); }
.right::before { content: "\\2713\\00a0"; }
.wrong::before { content: "\\2717\\00a0"; }
.voided .figure { color: var(--soft); }
.voided .part, .voided .yes, .voided .no { fill: var(--soft); }
svg { display: block; width: 100%; overflow: visible; }
.rest { fill: var(--rest); }
.part, .yes { fill: var(--yes); }
.no { fill: var(--no); }
h2 { font-size: 12px; font-weight: 600; color: var(--soft); margin: 12px 0 6px; }
.spread { border-bottom: 1px solid var(--soft); }
.axis { display: flex; justify-content: space-between; font-size: 11px; color: var(--soft); }
.rows { list-style: none; display: grid; gap: 8px; }
.rows li { font-size: 14px; }
.row { display: flex; justify-content: space-between; gap: 10px; margin-bottom: 3px; }
.row bdi { min-width: 0; unicode-bidi: isolate; }
.count { color: var(--soft); font-size: 12px; margin-inline-start: 6px; }
.row b { font-variant-numeric: tabular-nums; flex: none; }
.text b { flex: 0 1 auto; text-align: end; }
.text > span { flex: none; max-width: 60%; }
.won bdi { font-weight: 650; }
.won bdi::before { content: "\\2713\\00a0"; color: var(--good); }
.families { display: grid; grid-template-columns: repeat(auto-fit, minmax(118px, 1fr));
  gap: 8px 16px; }
.numbers { grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 2px 16px; }
.more { font-size: 13px; margin-top: 8px; color: var(--soft); }
.note { font-size: 13px; color: var(--soft); margin: 10px 0 0; unicode-bidi: isolate; }
footer { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 2px 12px;
  border-top: 1px solid var(--line); margin-top: 12px; padding-top: 8px; font-size: 12px;
  color: var(--soft); }
a { color: inherit; text-underline-offset: 2px; }
a:hover { color: var(--ink); }
:focus-visible { outline: 2px solid var(--yes); outline-offset: 2px; border-radius: 2px; }
.compact main { padding: 10px 12px; }
.compact h1 { font-size: 15px; margin: 2px 0 6px; }
.compact .side { display: grid; grid-template-columns: 1fr auto; gap: 0 14px; align-items: center; }
.compact .figure { font-size: 26px; text-align: end; }
.compact .said { font-size: 11px; text-align: end; }
.compact .lead { display: block; margin: 0; max-width: 9em; }
.compact .figure, .compact .said { display: block; }
.compact .words { font-size: 17px; }
.compact .verdict { font-size: 13px; margin-bottom: 6px; }
.compact footer { border: 0; margin-top: 6px; padding: 0; }
.gone { text-align: center; color: var(--soft); padding: 24px 16px; }
.gone h1 { color: var(--ink); }
.sr { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden;
  clip-path: inset(50%); white-space: nowrap; }
.plot { margin-top: 12px; }
.plot text { font-family: inherit; font-variant-numeric: tabular-nums; }
.wide-plot { display: none; }
@media (min-width: 480px) { .wide-plot { display: block; } .narrow-plot { display: none; } }
${pageRules()}
.key path { fill: none; stroke-width: 2.5; }
.keys { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 14px; font-size: 13px;
  margin-top: 8px; }
.key { display: inline-block; width: 14px; margin-inline-end: 6px; vertical-align: middle; }
table { width: 100%; border-collapse: collapse; font-size: 14px; }
th, td { text-align: start; font-weight: 400; padding: 5px 8px 5px 0; border-top: 1px solid var(--line); }
thead th { border: 0; font-size: 12px; color: var(--soft); }
th.n, td.n { text-align: end; font-variant-numeric: tabular-nums; padding: 5px 0 5px 8px; white-space: nowrap; }
th.n:first-child, td.n:first-child { width: 3.2em; padding: 5px 10px 5px 0; }
small { font-size: 12px; color: var(--soft); }
tbody a { text-decoration: none; }
tbody a:hover { text-decoration: underline; }
.compared, .compared b { color: var(--soft); font-weight: 400; }
@media (max-width: 360px) { table :is(th, td):last-child { display: none; } }
@media (max-width: 300px) {
  main { padding: 10px; }
  h1 { font-size: 16px; }
  .figure { font-size: 32px; }
  .compact .side { grid-template-columns: 1fr; }
  .compact .lead { display: flex; max-width: none; margin-bottom: 4px; }
  .compact .figure, .compact .said { text-align: start; }
}
@media (forced-colors: active) {
  .part, .yes { fill: Highlight; } .time-chart path[fill=none] { stroke: CanvasText; } .no { fill: CanvasText; } .rest { fill: ButtonFace; }
}
@media print { main { break-inside: avoid; } }
`;
