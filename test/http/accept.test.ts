import { namedTypes, preferredType } from '../../src/http/accept.js';
import { t } from '../help/tap.js';

t.test('types are named in the order in which they are wanted', (t) => {
  const [html, json, markdown] = ['text/html', 'application/json', 'text/markdown'];
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['', []],
    ['*/*', []],
    ['image/png, text/*', []],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', [html]],
    ['application/json;q=0.5, Text/HTML', [html, json]],
    ['text/markdown, application/json', [markdown, json]],
    ['application/json; charset=utf-8; q=0.1, text/markdown;q=0.2', [markdown, json]],
    ['application/json;q=0, */*', []],
    ['text/markdown;q=x', []],
  ];
  for (const [accept, wanted] of cases) t.same(namedTypes(accept), wanted, accept);
  t.end();
});

t.test('what an address does not offer does not count', (t) => {
  const offered = ['application/json', 'text/markdown'] as const;
  t.equal(preferredType('text/html, text/markdown;q=0.1', offered), 'text/markdown');
  t.equal(preferredType('text/html', offered), 'application/json');
  t.end();
});
