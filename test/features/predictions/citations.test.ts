import {
  checkCitations,
  citation_limits,
  readCitation,
} from '../../../src/features/predictions/citations.js';
import { findLinks } from '../../../src/kit/text.js';
import { pluck } from '../../help/pluck.js';
import { t } from '../../help/tap.js';

const check = (text: string) => checkCitations(text, findLinks(text));
const codes = (text: string) => check(text).failures.map(({ code }) => code);
const message = (text: string, code: string) =>
  check(text).failures.find((failure) => failure.code === code)?.message ?? '';

const one = 'https://a-site.org/one';
const two = 'https://a-site.org/two';

t.test('two different pages are enough, one or none is not', async (t) => {
  t.same(check(`${one} ${two}`), { citations: [one, two], keys: [one, two], failures: [] });
  t.same(codes(one), ['CITATIONS_REQUIRED']);
  t.match(message(one, 'CITATIONS_REQUIRED'), /at least two .* Only one was found/);
  t.same(codes('no links at all'), ['CITATIONS_REQUIRED']);
  t.match(message('', 'CITATIONS_REQUIRED'), /None was found/);
});

t.test('one page written in several ways is one page', async (t) => {
  const same = [
    `${one}#part`,
    `${one}/`,
    `${one}//`,
    'https://A-Site.ORG/one',
    `${one}?`,
    'HTTPS://a-site.org/one',
    `${one}?utm_source=x&utm_medium=y`,
    `${one}?fbclid=1#x`,
    `${one}/?gclid=2`,
    `${one}?UTM_Term=1`,
    'https://a-site.org:443/one',
    `${one}#:~:text=hello`,
  ];
  for (const other of same) {
    t.same(codes(`${one} ${other}`), ['CITATIONS_REQUIRED', 'CITATIONS_INVALID'], other);
    t.match(message(`${one} ${other}`, 'CITATIONS_INVALID'), /all 2 links lead to one page/);
    t.same(check(`${one} ${other} ${two}`).citations, [one, two]);
  }
  const different = [
    'https://a-site.org/One',
    `${one}?page=2`,
    `${one}?utm_source=x&page=2`,
    `${one}.html`,
    'https://b-site.org/one',
    'https://www.a-site.org/one',
    'https://a-site.org:8443/one',
    'http://a-site.org/one',
    `${one}?ref=main`,
  ];
  for (const other of different) t.same(codes(`${one} ${other}`), [], other);
  t.equal(readCitation(`${one}?utm_source=x&b=2&a=1&gclid=`).key, `${one}?b=2&a=1`);
});

t.test('what cannot be a source is named with its reason', async (t) => {
  const listed: [RegExp, string][] = [
    [/names a site, not a page/, 'https://openai.com https://openai.com/'],
    [/names a site/, 'https://openai.com/?utm_source=x https://openai.com/#part'],
    [/is a placeholder/, 'https://example.com/paper https://www.Example.ORG/paper'],
    [/is a placeholder/, 'https://example.net/paper https://example.co.uk/paper'],
    [/is a placeholder/, 'https://news.example/paper https://yourdomain.com/paper'],
    [/is a private address/, 'http://localhost/paper http://localhost:8080/paper'],
    [/is a private address/, 'http://app.localhost/paper http://printer.local/paper'],
    [/is a private address/, 'http://wiki.internal/paper http://site.test/paper'],
    [/is a private address/, 'http://nas.home.arpa/paper http://intranet/paper'],
    [/is a private address/, 'http://127.0.0.1/paper http://10.1.2.3:80/paper'],
    [/is a private address/, 'http://192.168.1.1/paper http://169.254.169.254/latest/meta-data'],
    [/is a private address/, 'http://0x7f000001/paper http://2130706433/paper'],
    [/is a private address/, 'http://[::1]/paper http://[fd00::1]/paper'],
    [/is a private address/, 'http://[::ffff:10.0.0.1]/paper http://localhost./paper'],
    [/contains a user name/, 'https://me:pass@a-site.org/paper'],
    [/is not a valid URL/, 'https://a-site.org:99999/paper https://a..org/paper'],
    [/is not a valid URL/, 'https://..../paper'],
    [/is longer than 2048 characters/, `https://a-site.org/${'x'.repeat(2_030)}`],
  ];
  const cases = listed.flatMap(([reason, urls]) =>
    urls.split(' ').map((url) => [url, reason] as const),
  );
  for (const [url, reason] of cases) {
    t.same(codes(`${url} ${one}`), ['CITATIONS_INVALID'], url.slice(0, 60));
    t.match(message(`${url} ${one}`, 'CITATIONS_INVALID'), reason);
    t.same(codes(url), ['CITATIONS_REQUIRED', 'CITATIONS_INVALID']);
    t.same(check(`${url} ${one} ${two}`), {
      citations: [one, two],
      keys: [one, two],
      failures: [],
    });
  }
  t.same(codes('https://openai.com https://anthropic.com'), ['CITATIONS_INVALID']);
});

t.test('ordinary sources of all kinds are usable', async (t) => {
  const urls = [
    'https://en.wikipedia.org/wiki/Foo_(bar)',
    'https://news.ycombinator.com/?id=3',
    'https://arxiv.org/abs/2401.00001v2',
    'http://8.8.8.8/stats',
    'https://ja.wikipedia.org/wiki/東京',
    'https://bücher.de/katalog',
    'https://x.org/a%20b',
    'https://x.org/a/../b',
    'https://t.co/AbC',
    'https://contest.org/x',
    'https://exampleville.gov/x',
    'https://localhostnews.com/x',
    'https://homedepot.com/x',
    'https://xn--bcher-kva.de/x',
    'https://a_b.org/x',
    `https://a-site.org/${'x'.repeat(citation_limits.length - 19)}`,
  ];
  for (const url of urls) t.equal(readCitation(url).problem, null, url.slice(0, 60));
  t.equal(readCitation('https://x.org/a/../b').key, 'https://x.org/b');
  t.equal(readCitation('https://Bücher.de/x/').key, 'https://xn--bcher-kva.de/x');
});

t.test('the quick reading and the URL standard agree on the page', async (t) => {
  const urls = [
    one,
    `${one}?q=a+b&c`,
    "https://A.org/X~y!$&'()*,;:@/z",
    'https://x.org/a;b=c?d=e/f?g',
    'https://x.org/[a]',
    'http://x.org/a?b',
  ];
  for (const url of urls) {
    const parsed = new URL(url);
    t.equal(readCitation(url).key, `${parsed.origin}${parsed.pathname}${parsed.search}`, url);
  }
});

t.test('at most 50 pages are kept', async (t) => {
  const pages = (n: number) => Array.from({ length: n }, (_, i) => `${one}/${i}`).join(' ');
  t.equal(check(pages(50)).citations.length, 50);
  t.equal(check(pages(51)).citations.length, 50);
  t.equal(check(pages(700)).keys.length, 50);
});

t.test('what is given beside the text counts like what stands in it', async (t) => {
  const [one, two] = ['https://a.org/one', 'https://b.org/two?utm_source=x'];
  const read = (text: string, beside: readonly string[]) =>
    checkCitations(text, findLinks(text), beside);
  t.same(read('', [one, two]).failures, []);
  t.same(read(`See ${one}.`, [two]).citations, [one, two]);
  t.same(read(`See ${one} and ${two}.`, [`${one}/`, ` ${two}#part `]).citations, [one, two]);
  t.same(pluck(read('', [one, `${one}/`]).failures, 'code'), [
    'CITATIONS_REQUIRED',
    'CITATIONS_INVALID',
  ]);
  const others = ['ftp://a.org/x', 'b.org/two', '', 'javascript:alert(1)//x.org/a'];
  const found = read(one, others);
  t.same(found.citations, [one]);
  t.match(found.failures, [
    { code: 'CITATIONS_REQUIRED', message: /in the reasoning or in evidence_urls\. Only one/ },
    {
      code: 'CITATIONS_INVALID',
      message: /“ftp:\/\/a.org\/x” is not an http\(s\) URL; “b.org\/two” is/,
    },
  ]);
  t.same(read(`${one} ${two}`, others).failures, [], 'beside two good ones they do no harm');
});
