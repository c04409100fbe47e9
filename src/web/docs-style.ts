/** The style of the reference: one column on a phone, three on a wide screen. */
export const docs_style = `
:root { color-scheme: light dark; --ink: #1a1e24; --soft: #57616c; --paper: #fff; --side: #f6f7f9;
  --line: #dfe3e8; --lead: #0b5cad; --code: #f3f5f8; --mark: #fff3c4; --get: #0b5cad;
  --post: #146c2e; --patch: #8a4b00; --delete: #a40e26; --string: #146c2e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa5b1; --paper: #12151a;
  --side: #171b21; --line: #2c333c; --lead: #79b8ff; --code: #1b2028; --mark: #4a3f10;
  --get: #79b8ff; --post: #6bd688; --patch: #f0b35a; --delete: #ff8f9c; --string: #8fdca4; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 4.25rem; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
a { color: var(--lead); text-underline-offset: .15em; }
code, pre, kbd { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { font-size: .875em; overflow-wrap: anywhere; }
:not(pre) > code { background: var(--code); border-radius: .25rem; padding: .1em .3em; }
pre { margin: 0; padding: .85rem 1rem; overflow-x: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; font-size: .8125rem; line-height: 1.55;
  background: var(--code); border-radius: 0 0 .5rem .5rem; tab-size: 2; }
pre:focus-visible { outline-offset: -3px; }
:focus-visible { outline: 3px solid var(--lead); outline-offset: 2px; border-radius: .2rem; }
pre .v { color: var(--patch); } pre .s { color: var(--string); } pre .c { color: var(--soft); }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--paper); padding: .5rem; z-index: 9; }
.bar { position: sticky; top: 0; z-index: 5; display: flex; align-items: center; gap: 1rem;
  min-height: 3.25rem; padding: .4rem 1.25rem; background: var(--paper);
  border-bottom: 1px solid var(--line); }
.bar strong a { color: inherit; text-decoration: none; white-space: nowrap; }
.bar .doors { display: flex; gap: 1rem; margin-left: auto; font-size: .9rem; }
.bar .doors a { text-decoration: none; white-space: nowrap; }
.bar .doors a:hover { text-decoration: underline; }
.bar .doors [aria-current] { color: var(--ink); font-weight: 600; }
.search { flex: 0 1 20rem; min-width: 7rem; font: inherit; font-size: .9rem; color: inherit;
  background: var(--side); border: 1px solid var(--line); border-radius: .5rem;
  padding: .35rem .7rem; }
.frame { display: grid; grid-template-columns: 18.5rem minmax(0, 1fr); max-width: 100rem; }
.side { position: sticky; top: 3.25rem; align-self: start; height: calc(100vh - 3.25rem);
  overflow-y: auto; padding: 1rem 1rem 3rem 1.25rem; background: var(--side);
  border-right: 1px solid var(--line); font-size: .8125rem; }
.side b { display: block; margin: 1.1rem 0 .3rem; font-size: .7rem; letter-spacing: .06em;
  text-transform: uppercase; color: var(--soft); }
.side ul { list-style: none; margin: 0; padding: 0; }
.side a { display: flex; gap: .5rem; padding: .16rem .35rem; border-radius: .3rem; color: inherit;
  text-decoration: none; }
.side a:hover { background: var(--line); }
.side a span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.opener, .opens { display: none; }
main { padding: 1.5rem 2.5rem 6rem; min-width: 0; }
main > header, .prose { max-width: 46rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: .5rem 0; letter-spacing: -.01em; }
h2 { font-size: 1.45rem; line-height: 1.25; margin: 2.5rem 0 .35rem; padding-top: 1.25rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 0; line-height: 1.4; }
h4 { font-size: .75rem; margin: 1.4rem 0 .35rem; letter-spacing: .05em; text-transform: uppercase;
  color: var(--soft); }
p { margin: .5rem 0 .85rem; }
.soft { color: var(--soft); }
.lead { font-size: 1.1rem; color: var(--soft); }
.anchor { color: var(--soft); text-decoration: none; opacity: 0; font-weight: 400; }
:hover > .anchor, .anchor:focus { opacity: 1; }
.op { padding: 1.75rem 0; border-top: 1px solid var(--line); content-visibility: auto;
  contain-intrinsic-size: auto 40rem; }
h2 + .about + .op, h2 + .op { border-top: 0; }
.op:target > h3 { background: var(--mark); }
.op h3 { display: flex; flex-wrap: wrap; align-items: baseline; gap: .3rem .6rem; }
.op h3 code { background: none; padding: 0; font-size: 1rem; }
.what { font-size: 1.05rem; margin: .35rem 0 .5rem; }
.pair { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 2.5rem; }
.pair .shown { position: sticky; top: 4.25rem; align-self: start; }
.m { font: 700 .7rem/1.6 ui-monospace, monospace; letter-spacing: .03em; flex: none; }
.side .m { width: 2.9rem; font-size: .62rem; line-height: 1.9; }
.GET { color: var(--get); } .POST { color: var(--post); } .PATCH, .PUT { color: var(--patch); }
.DELETE { color: var(--delete); }
.facts { display: flex; flex-wrap: wrap; gap: .35rem .5rem; margin: .5rem 0; padding: 0;
  list-style: none; font-size: .8125rem; }
.facts li { border: 1px solid var(--line); border-radius: 1rem; padding: .05rem .65rem; }
.members { list-style: none; margin: 0; padding: 0; border: 1px solid var(--line);
  border-radius: .5rem; font-size: .9rem; }
.members .members { margin: .4rem 0 .2rem; background: var(--side); }
.members > li { padding: .45rem .75rem; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
.members > li:first-child { border-top: 0; }
.members > li > code:first-child { background: none; padding: 0; font-weight: 600; }
.type { color: var(--soft); font-size: .85em; margin-left: .4rem; }
.must { color: var(--delete); font-size: .75rem; margin-left: .4rem; }
.members p { margin: .1rem 0 0; color: var(--soft); }
.returns > p, .members p.type { margin: .5rem 0 .2rem; }
summary { cursor: pointer; }
details > summary { color: var(--lead); font-size: .8125rem; }
.returns { margin: .2rem 0 .6rem; }
.status { font: 600 .8125rem/1.5 ui-monospace, monospace; }
.ok { color: var(--post); } .no { color: var(--delete); }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th { text-align: left; font-size: .75rem; color: var(--soft); font-weight: 600; }
th, td { padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td code { white-space: nowrap; }
td:last-child code { white-space: normal; }
.scroll { overflow-x: auto; }
.also { font-size: .8125rem; color: var(--soft); margin: .6rem 0; }
.also a { color: inherit; }
figure { margin: 0 0 1rem; border: 1px solid var(--line); border-radius: .5rem; overflow: hidden; }
figcaption { display: flex; justify-content: space-between; align-items: center; gap: 1rem;
  padding: .3rem .4rem .3rem 1rem; font-size: .75rem; color: var(--soft); background: var(--side);
  border-bottom: 1px solid var(--line); min-height: 2.1rem; }
figcaption button { font: inherit; color: var(--lead); background: none; border: 0;
  border-radius: .3rem; padding: .2rem .6rem; cursor: pointer; }
[hidden] { display: none !important; }
.found { margin: 0; font-size: .8125rem; color: var(--soft); }
@media (max-width: 75rem) { .pair { grid-template-columns: minmax(0, 1fr); gap: 1rem; }
  .pair .shown { position: static; } }
@media (max-width: 52rem) {
  .frame { display: block; }
  .bar { flex-wrap: wrap; gap: .3rem .9rem; padding: .5rem 1rem; position: static; }
  .bar .doors { flex-wrap: wrap; gap: .2rem .9rem; margin-left: 0; width: 100%; }
  .search { flex: 1 1 8rem; }
  html { scroll-padding-top: .75rem; }
  .opens { display: block; position: absolute; opacity: 0; }
  .opener { display: block; margin: .75rem 1rem 0; padding: .5rem .8rem; cursor: pointer;
    border: 1px solid var(--line); border-radius: .5rem; color: var(--lead); }
  .opens:focus-visible + .opener { outline: 3px solid var(--lead); }
  .side { position: static; height: auto; max-height: 60vh; border: 0; display: none;
    margin: .5rem 1rem; border-radius: .5rem; }
  .opens:checked ~ .side { display: block; }
  .side a { padding: .4rem .35rem; }
  main { padding: 1rem 1rem 4rem; }
  .stack thead { display: none; }
  .stack tr { display: block; border-bottom: 1px solid var(--line); padding: .45rem 0; }
  .stack td { display: inline; border: 0; padding: 0; margin-right: .5rem; }
  .stack td:last-child { display: block; }
  h1 { font-size: 1.6rem; } h2 { margin-top: 2.25rem; }
}
@media print { .bar, .side, .opener, .shown button { display: none; } .frame { display: block; }
  .op { content-visibility: visible; } }
`;
