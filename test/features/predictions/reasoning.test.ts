import fc from 'fast-check';
import { checkReasoning } from '../../../src/features/predictions/gates.js';
import { readSections } from '../../../src/features/predictions/reasoning.js';
import { withoutControls } from '../../../src/kit/text.js';
import { timeAtBest } from '../../help/stopwatch.js';
import { t } from '../../help/tap.js';
import { good_reasonings } from './samples.js';
import { empty_in_scripts, in_scripts } from './scripts.js';

const source_one = 'https://www.bls.gov/news.release/cpi.nr0.htm';
const source_two = 'https://fred.stlouisfed.org/series/UNRATE';
const links = `${source_one} ${source_two}`;
const prose =
  'Employment growth slowed during three consecutive quarters while wages kept rising above ' +
  'productivity, which historically precedes weaker hiring; nevertheless consumer spending, ' +
  'construction permits, export orders, business surveys and credit conditions remain robust ' +
  'according to several independent reports published this month.';

interface Parts {
  readonly evidence?: string;
  readonly analysis?: string;
  readonly counter?: string;
  readonly bottom?: string;
}
const write = (parts: Parts = {}): string =>
  [
    `EVIDENCE\n${parts.evidence ?? `See ${source_one} and ${source_two}.`}`,
    `ANALYSIS\n${parts.analysis ?? prose}`,
    `COUNTER-EVIDENCE\n${parts.counter ?? 'Revisions could change the picture.'}`,
    `BOTTOM LINE\n${parts.bottom ?? 'Probably yes.'}`,
  ].join('\n\n');

const codes = (text: string): string[] => checkReasoning(text).failures.map(({ code }) => code);
const messageOf = (text: string, code: string): string =>
  checkReasoning(text).failures.find((failure) => failure.code === code)?.message ?? '';

t.test('reasonings as forecasters write them pass every gate', async (t) => {
  t.equal(good_reasonings.length, 10);
  for (const [i, text] of good_reasonings.entries()) {
    const check = checkReasoning(text);
    t.same(check.failures, [], `sample ${i + 1}`);
    t.ok(check.citations.length >= 2, `sample ${i + 1} cites`);
    t.equal(check.citation_keys.length, check.citations.length);
  }
  t.same(codes(write()), []);
});

t.test('the checked text is trimmed and in NFC, and it is what is handed back', async (t) => {
  const check = checkReasoning(`\n  ${write({ bottom: 'A cafe\u0301 says yes.' })}\u00a0\n`);
  t.equal(check.text, write({ bottom: 'A café says yes.' }));
});

t.test('a reasoning has 200 to 10,000 characters after trimming', async (t) => {
  // These texts only test the lower bound, so they also fail the checks of words and sections.
  const short = (length: number): string => 'z'.repeat(length);
  t.match(messageOf(`  ${short(199)}\n`, 'REASONING_TOO_SHORT'), /200 characters .* not 199/);
  t.notMatch(messageOf(short(200), 'REASONING_TOO_SHORT'), /characters of reasoning/);
  t.match(messageOf('😀'.repeat(199), 'REASONING_TOO_SHORT'), /not 199/, 'code points count');
  t.notMatch(messageOf('😀'.repeat(200), 'REASONING_TOO_SHORT'), /characters of reasoning/);
  t.match(messageOf('', 'REASONING_TOO_SHORT'), /not 0/);
  const long = write().padEnd(9_999, ` ${prose}`);
  t.same(codes(`${long}c`), [], 'exactly 10,000');
  t.same(codes(`${long.slice(0, -1)}😀c`), [], '10,000 code points in 10,001 units');
  t.same(codes(`${long}cc`), ['INVALID_REQUEST'], '10,001');
  t.match(messageOf(`${long}cc`, 'INVALID_REQUEST'), /at most 10000 characters.*not 10001/);
  // NFC doubles the length of this character. The length after NFC counts.
  t.ok(codes(`${write()}${'\u0958'.repeat(9_000)}`).includes('INVALID_REQUEST'));
});

t.test('a reasoning has 30 different words of four letters, headings and URLs aside', async (t) => {
  const letters = 'abcdefghijklmnopqrstuvwxyzäöüéèñ';
  const words = (n: number): string =>
    Array.from({ length: n }, (_, i) => `wor${letters[i]}d`).join(' ');
  const text = (n: number): string =>
    write({
      evidence: `it is so ${source_one} ${source_two}\n# Headings never count towards anything`,
      analysis: `${words(n)} ${words(n).toUpperCase()} ${'and so on, '.repeat(12)}`,
      counter: 'not so',
      bottom: 'yes',
    });
  t.equal(checkReasoning(text(30)).words.length, 30);
  t.same(codes(text(30)), []);
  t.same(codes(text(29)), ['REASONING_TOO_SHORT']);
  t.match(messageOf(text(29), 'REASONING_TOO_SHORT'), /30 different words .* not 29/);
});

t.test('scripts without blanks, and Korean, have words of two letters', async (t) => {
  for (const [script, text] of Object.entries(in_scripts)) {
    const check = checkReasoning(text);
    t.same(check.failures, [], script);
    t.ok(check.words.length >= 30, `${script}: ${check.words.length} words`);
    t.ok(check.words.length < text.length / 3, `${script}: ${check.words.length} words`);
    const { evidence, bottom_line } = readSections(check.text);
    t.ok(text.includes(evidence) && text.endsWith(bottom_line), script);
  }
  for (const [script, sentence] of Object.entries(empty_in_scripts)) {
    const again = sentence.repeat(Math.ceil(300 / sentence.length));
    const found = codes(write({ analysis: again, counter: '50', bottom: '50', evidence: links }));
    t.ok(found.includes('REASONING_TOO_SHORT'), `${script}, again and again: ${found}`);
    t.ok(codes(sentence).includes('REASONING_TOO_SHORT'), `${script}, short`);
  }
  const chinese =
    '中国 经济 增长 数据 政府 市场 投资 消费 出口 进口 工业 农业 服务 企业 银行 利率 价格 股票 贸易 ' +
    '政策 技术 能源 汽车 房屋 人口 教育 医疗 交通 环境 安全';
  const korean =
    '경제 성장 자료 정부 시장 투자 소비 수출 수입 공업 농업 봉사 기업 은행 금리 가격 주식 무역 ' +
    '정책 기술 전력 차량 주택 인구 교육 의료 교통 환경 안전 건설';
  for (const list of [chinese, korean]) {
    const words = list.split(' ');
    const text = (n: number): string =>
      write({
        evidence: links,
        analysis: `${words.slice(0, n).join('、')}。${'的、가 '.repeat(50)}`,
        counter: '50',
        bottom: '50',
      });
    t.equal(words.length, 30);
    t.same(codes(text(30)), []);
    t.same(codes(text(29)), ['REASONING_TOO_SHORT']);
    const message = messageOf(text(29), 'REASONING_TOO_SHORT');
    t.match(
      message,
      /, not 29\. In Korean and in scripts without spaces, two letters are enough\. .*count\.$/,
    );
  }
});

t.test('a heading may be written in any usual way', async (t) => {
  const layouts: ((name: string) => string)[] = [
    (name) => name,
    (name) => `${name}:`,
    (name) => `${name.toLowerCase()}:`,
    (name) => `${name} :`,
    (name) => `# ${name}`,
    (name) => `###### ${name} ######`,
    (name) => `##${name}`,
    (name) => `**${name}**`,
    (name) => `**${name}:**`,
    (name) => `**${name}**:`,
    (name) => `__${name}__`,
    (name) => `*${name}*`,
    (name) => `## **${name}**`,
    (name) => `> ${name}`,
    (name) => `1. ${name}:`,
    (name) => `2) **${name}**`,
    (name) => `\t ${name}  \r`,
    (name) => `${name}：`,
    (name) => `${name} — `,
    (name) => `${name}: inline text and`,
    (name) => name.replace('-', ' '),
    (name) => name.replace('-', '').replace('BOTTOM LINE', 'Bottomline'),
    (name) => name.replace('-', '–'),
    (name) => name.replace('-', ' - '),
    (name) => name.replace('-', '\u2011').replace('BOTTOM LINE', 'BOTTOM-LINE'),
    (name) => `**1. ${name}**`,
    (name) => `1. ${name}`,
    (name) => `1) **${name}**:`,
    (name) => `${name}\r`,
    (name) => `- **${name}**`,
    (name) => `- ${name}:`,
    (name) => `**${name.toLowerCase()}:** so it is,`,
  ];
  for (const layout of layouts) {
    const text = write().replace(/^(EVIDENCE|ANALYSIS|COUNTER-EVIDENCE|BOTTOM LINE)$/gm, layout);
    t.same(codes(text), [], JSON.stringify(layout('COUNTER-EVIDENCE')));
  }
});

t.test('a sentence that begins with the word is no heading', async (t) => {
  const sentences = [
    'Evidence suggests that it will',
    'EVIDENCE suggests',
    'Evidence-based reasons',
    'EVIDENCES:',
    'The evidence:',
    'The **evidence** of it',
    'Of **Evidence and data**',
    'snake_EVIDENCE:',
    'PRE-EVIDENCE:',
    'https://a.org/EVIDENCE: and',
    'COUNTER-**EVIDENCE**:',
    'COUNTER – EVIDENCE:',
    'Evidence — from polls',
    'evidence, of course:',
    '#evidence-tag',
    '## Evidence and data',
    'EVIDENCE1:',
    'in 2024. EVIDENCE says',
    'EVIDENCE.',
  ];
  for (const sentence of sentences) {
    const text = write().replace(/^EVIDENCE$/m, sentence);
    const message = messageOf(text, 'REASONING_MISSING_SECTIONS');
    t.match(message, /”\. EVIDENCE (?:is missing|is at character 1 |is at character \d+ )/);
  }
});

const parts = [
  ['EVIDENCE', `Two offices say so, ${source_one} and ${source_two}.`],
  ['ANALYSIS', prose],
  ['COUNTER-EVIDENCE', 'Revisions could change the picture; such evidence: none yet.'],
  ['BOTTOM LINE', 'Probably yes.'],
] as const;

t.test('the four in running text are found, and read the same by all', async (t) => {
  const layouts: Record<string, (name: string, n: number) => string> = {
    colon: (name) => `${name}: `,
    'full-width colon': (name) => `${name}：`,
    'blank before the colon': (name) => `${name} : `,
    bold: (name) => `**${name}** `,
    'bold, a colon inside': (name) => `**${name}:** `,
    'bold, a colon behind': (name) => `**${name}**: `,
    'bold, as a title': (name) =>
      `**${name.toLowerCase().replace(/(?:^|[ -])[a-z]/g, (first) => first.toUpperCase())}** `,
    'bold, lower case': (name) => `**${name.toLowerCase()}:** `,
    underlined: (name) => `__${name}__ `,
    'a rank of Markdown': (name) => `## ${name} `,
    numbered: (name, n) => `${n + 1}. ${name} `,
    'numbered in bold': (name, n) => `**${n + 1}) ${name}:** `,
    'numbered before bold': (name, n) => `${n + 1}) **${name}**: `,
    'no hyphen': (name) => `${name.replace('-', ' ')}: `,
    'one word': (name) => `${name.replace('-', '')}: `,
    'another hyphen': (name) => `${name.replace('-', '\u2011')}: `,
    'a soft hyphen': (name) => `${name.replace('-', '\u00ad')}: `,
    'a dash with blanks': (name) => `${name.replace('-', ' – ')}: `,
  };
  const [evidence, analysis, counter_evidence, bottom_line] = parts.map(([, text]) => text);
  for (const between of [' ', '\r\n', '\r\n\r\n', '\n', '\\n', '\\n\\n', '\\r\\n']) {
    for (const [layout, write] of Object.entries(layouts)) {
      const text = parts.map(([name, text], n) => `${write(name, n)}${text}`).join(between);
      const what = `${layout} ${JSON.stringify(between)}`;
      const check = checkReasoning(text);
      t.same(check.failures, [], what);
      t.same(readSections(check.text), { evidence, analysis, counter_evidence, bottom_line }, what);
      t.equal(
        check.text,
        between.startsWith('\\')
          ? text.replaceAll(between, '\n'.repeat(between.split('n').length - 1))
          : text,
        what,
      );
    }
  }
});

t.test('a heading in lines escaped twice is found, and other backslashes stay', async (t) => {
  const lines = (end: string): string =>
    parts.map(([name, text]) => `${name}${end}${text}`).join(end);
  for (const end of ['\\n', '\\r\\n', '\\n\\n']) {
    const check = checkReasoning(`${lines(end)} Kept in C:\\data.`);
    t.same(check.failures, [], end);
    t.equal(
      check.text,
      `${lines(end.replaceAll('\\r', '').replaceAll('\\n', '\n'))} Kept in C:\\data.`,
    );
  }
  const plain = `${lines('\n')} It is kept in C:\\new\\notes, see \\neq.`;
  t.equal(checkReasoning(plain).text, plain);
});

t.test('every order of the four sections but the right one is refused, and says so', async (t) => {
  const sections: Record<string, string> = Object.fromEntries(parts);
  const names = Object.keys(sections);
  const permute = (rest: string[]): string[][] =>
    rest.length === 0
      ? [[]]
      : rest.flatMap((name) => permute(rest.filter((x) => x !== name)).map((p) => [name, ...p]));
  for (const order of permute(names)) {
    const text = order.map((name) => `${name}\n${sections[name]}`).join('\n');
    if (order.join() === names.join()) t.same(codes(text), []);
    else {
      t.same(codes(text), ['REASONING_MISSING_SECTIONS'], order.join());
      const message = messageOf(text, 'REASONING_MISSING_SECTIONS');
      t.match(message, /is out of order/);
      t.notMatch(message, /is missing|has no text/);
      t.match(message, new RegExp(`Found: ${order.map((name) => `${name} at .*`).join('')}\\.$`));
    }
  }
});

t.test('what is missing or empty is named', async (t) => {
  const message = (text: string) => messageOf(text, 'REASONING_MISSING_SECTIONS');
  t.match(
    message(`${prose} ${source_one} ${source_two}`),
    /EVIDENCE is missing; ANALYSIS is missing; COUNTER-EVIDENCE is missing; BOTTOM LINE is missing/,
  );
  const empty = write({ counter: '' });
  const at = (name: string): number => empty.indexOf(`${name}\n`) + 1;
  t.equal(
    message(empty),
    'Write the sections EVIDENCE, ANALYSIS, COUNTER-EVIDENCE, BOTTOM LINE, in this order, each with ' +
      'text and a heading such as “EVIDENCE:”. COUNTER-EVIDENCE at character ' +
      `${at('COUNTER-EVIDENCE')} has no text. Found: EVIDENCE at character 1, ANALYSIS at character ` +
      `${at('ANALYSIS')}, COUNTER-EVIDENCE at character ${at('COUNTER-EVIDENCE')}, BOTTOM LINE at ` +
      `character ${at('BOTTOM LINE')}.`,
  );
  t.match(message(write({ counter: '--- ** ...' })), /COUNTER-EVIDENCE at .* has no text/);
  t.match(message(write({ bottom: '' })), /BOTTOM LINE at .* has no text/);
  t.match(message(write({ counter: '## Another heading' })), /COUNTER-EVIDENCE at .* has no text/);
  t.match(
    message(write().replace('ANALYSIS\n', 'Analysis suggests that 😀\n')),
    /ANALYSIS is at character \d+ \(“Analysis suggests that 😀”\), but not as a heading\. Found/,
  );
  t.equal(message(write({ counter: '## Another heading\nNo.' })), '');
  t.equal(message(write({ counter: '50' })), '', 'a figure is text');
  t.equal(message(write({ counter: '否。' })), '', 'of any script');
  t.equal(message(write({ evidence: `${source_one}\n${source_two}` })), '', 'links are text');
});

t.test('a heading may occur again as long as the four are found in order', async (t) => {
  t.same(codes(`BOTTOM LINE: likely.\n${write()}`), []);
  t.same(codes(`${write()}\nEVIDENCE: more of it.`), []);
  t.same(codes(`EVIDENCE\n${write()}`), []);
});

t.test('every failing gate is reported, in the order of the gates', async (t) => {
  t.same(codes('bullshit'), [
    'REASONING_TOO_SHORT',
    'REASONING_TOO_SHORT',
    'REASONING_MISSING_SECTIONS',
    'CITATIONS_REQUIRED',
    'CONTENT_REJECTED',
  ]);
  const all = checkReasoning('bullshit http://localhost/x http://localhost/x').failures;
  t.ok(all.every(({ path, message }) => path === 'body.reasoning' && /\.$/.test(message)));
  t.same(
    [...new Set(all.map(({ code }) => code))],
    [
      'REASONING_TOO_SHORT',
      'REASONING_MISSING_SECTIONS',
      'CITATIONS_REQUIRED',
      'CITATIONS_INVALID',
      'CONTENT_REJECTED',
    ],
  );
  t.match(messageOf(write({ bottom: 'fuck' }), 'CONTENT_REJECTED'), /profanity \(“fuck”\)/);
  t.match(messageOf(write({ bottom: 'y'.repeat(31) }), 'CONTENT_REJECTED'), /31 times in a row/);
  t.same(codes(write({ bottom: 'y'.repeat(30) })), []);
});

t.test('no text is slow or breaks a gate', async (t) => {
  const signs = [...'#*_> \t\n-:/?&([%\\@é中😀\ud800.='];
  const words = 'EVIDENCE COUNTER http :// a.b utm_ word .. localhost -a'.split(' ');
  const pieces = [...signs, ...words, '1. ', 'https://a.b/c ', 'BOTTOM ', 'LINE', ' x1y'];
  const slow: string[] = [];
  const check = (text: string): void => {
    const { citations, citation_keys } = checkReasoning(text);
    if (citations.length > 50 || citation_keys.some((key) => key.length > 2_200)) slow.push('size');
  };
  // A text counts as slow only if it is slow on every try, because the machine may be busy.
  const timed = (text: string): void => {
    if (timeAtBest(() => check(text), 50) > 50) slow.push(text.slice(0, 60));
  };
  timed('中 warm-up');
  for (const piece of pieces) {
    timed(piece.repeat(10_000 / piece.length));
    timed(`https://${piece.repeat(10_000 / piece.length)}`);
    timed(`EVIDENCE${piece.repeat(10_000 / piece.length)}`);
  }
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 40 }), (parts) => {
      const unit = parts.join('');
      timed(unit);
      timed(unit.repeat(Math.ceil(10_000 / unit.length)).slice(0, 10_000));
    }),
    { numRuns: 300 },
  );
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (text) => {
      timed(text);
      const { text: kept } = checkReasoning(text);
      const plain = withoutControls(text).normalize('NFC').trim();
      return kept === plain || plain.includes('\\n');
    }),
  );
  t.same(slow, []);
});
