import { createHmac } from 'node:crypto';
import t from 'tap';
import { persona_archetypes, risk_profiles, roles } from '../../src/features/agents/rules.js';
import { checkReasoning } from '../../src/features/predictions/gates.js';
import { modelFamily } from '../../src/features/taxonomy/model-family.js';
import { readDemoArguments } from '../../src/tools/demo/arguments.js';
import { cast } from '../../src/tools/demo/cast.js';
import { scripts } from '../../src/tools/demo/questions.js';
import { speak } from '../../src/tools/demo/reasoning.js';
import { isSigned } from '../../src/tools/demo/receiver.js';
import { isComplete, summarise, type Tally } from '../../src/tools/demo/summary.js';
import { makeView, type Picture, pictureLines } from '../../src/tools/demo/view.js';
import { localUrl } from '../../src/tools/shared/arguments.js';
import { makeProgress } from '../../src/tools/shared/terminal.js';

t.test(
  'the cast: 25 different agents of at least six families, as registration takes them',
  async (t) => {
    t.equal(cast.length, 25);
    t.equal(new Set(cast.map(({ name }) => name)).size, 25);
    const families = new Set(cast.map(({ model }) => modelFamily(model)));
    t.ok(families.size >= 6, [...families].join(', '));
    t.notOk(families.has('other'));
    t.ok(new Set(cast.slice(0, 6).map(({ model }) => modelFamily(model))).size >= 2);
    for (const { name, persona_archetype, risk_profile, role } of cast) {
      t.ok(name.length + 7 <= 50, name);
      t.ok((persona_archetypes as readonly string[]).includes(persona_archetype));
      t.ok((risk_profiles as readonly string[]).includes(risk_profile));
      t.ok(role.split(',').every((each) => (roles as readonly string[]).includes(each)));
    }
  },
);

const wordsOf = (text: string): Set<string> =>
  new Set(
    text
      .replace(/https?:\/\/\S+/g, ' ')
      .toLowerCase()
      .match(/\p{L}+/gu),
  );

t.test(
  'every reasoning passes the gates, has sources of its own, and is unlike the others',
  async (t) => {
    const urls = new Set<string>();
    let closest = 0;
    for (const [question, script] of scripts.entries()) {
      const seen: Set<string>[] = [];
      for (const [agent, member] of cast.entries()) {
        const stated = speak(script, { member, agent, question, run_id: '0a1b2c' });
        const checked = checkReasoning(stated.reasoning);
        t.same(checked.failures, [], `${member.name} on question ${question}`);
        t.equal(checked.citations.length, 2);
        for (const url of checked.citations) urls.add(url);
        t.ok(Number.isInteger(stated.confidence));
        t.ok(stated.confidence >= 4 && stated.confidence <= 96);
        if (script.options === undefined) t.ok(stated.confidence >= 50);
        else t.ok(script.options.includes(stated.selected_option ?? ''));
        const words = wordsOf(stated.reasoning);
        for (const other of seen) {
          let shared = 0;
          for (const word of words) if (other.has(word)) shared += 1;
          closest = Math.max(closest, shared / (words.size + other.size - shared));
        }
        seen.push(words);
      }
    }
    t.equal(urls.size, 2 * cast.length * scripts.length, 'no source comes twice');
    t.ok(closest < 0.6, `two texts on one question share ${closest.toFixed(3)} of their words`);
    const answers = cast.map((member, agent) =>
      speak(scripts[0]!, { member, agent, question: 0, run_id: 'x' }),
    );
    t.ok(new Set(answers.map(({ confidence }) => confidence)).size > 5, 'opinions differ');
  },
);

t.test('the questions fit the limits of the contract', async (t) => {
  t.ok(scripts.length >= 5);
  for (const script of scripts) {
    const text = script.question.replace('{date}', '2031-01-01');
    t.notMatch(text, /[{}]/);
    t.ok(text.length >= 10 && text.length <= 500);
    t.ok(script.description.length <= 10_000);
    t.ok(script.options === undefined || script.options.length >= 2);
  }
});

t.test('a signature is taken only when it is right in every character, and new', async (t) => {
  const secret = '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f';
  const body = Buffer.from('{"event":"question.created","data":{},"timestamp":"2026-01-02"}');
  const now_s = Math.floor(Date.now() / 1_000);
  const sign = (timestamp: number | string, key = secret): string =>
    `v1,${createHmac('sha256', key).update(`e1.${timestamp}.`).update(body).digest('base64')}`;
  const isTaken = (
    signature: string,
    { timestamp = now_s as number | string, id = 'e1', bytes = body } = {},
  ): boolean =>
    isSigned(
      secret,
      {
        ...{ 'webhook-id': id, 'webhook-timestamp': String(timestamp) },
        'webhook-signature': signature,
      },
      bytes,
    );
  const right = sign(now_s);
  t.equal(isTaken(right), true);
  t.equal(isTaken(`${sign(now_s, 'another')} ${right}`), true, 'two while a secret is rotated');
  t.equal(isTaken(right.slice(0, -1)), false);
  t.equal(isTaken(right.slice(3)), false);
  t.equal(isTaken(''), false);
  t.equal(isTaken(sign(now_s, 'another')), false);
  t.equal(isTaken(right, { id: 'e2' }), false);
  t.equal(isTaken(right, { bytes: Buffer.concat([body, Buffer.from(' ')]) }), false);
  t.equal(isTaken(sign(now_s - 290), { timestamp: now_s - 290 }), true);
  t.equal(isTaken(sign(now_s - 310), { timestamp: now_s - 310 }), false, 'too old');
  t.equal(isTaken(sign('now'), { timestamp: 'now' }), false);
});

const tally = (more: Partial<Tally> = {}): Tally => ({
  accepted: new Set(['a', 'b']),
  consensus_total: 2,
  on_socket: new Set(['b', 'a']),
  verified: new Set(['a', 'b']),
  rejected: 0,
  ...more,
});

t.test('the summary is content only when all four counts are of the same events', async (t) => {
  t.equal(isComplete(tally()), true);
  t.match(summarise(tally(), 2), { equal: true, lines: [/^$/, /accepted +2 {2}✓/] });
  t.equal(summarise(tally(), 2).lines.at(-1), 'All counts are equal.');
  const wrong: readonly Partial<Tally>[] = [
    { consensus_total: 3 },
    { on_socket: new Set(['a']) },
    { on_socket: new Set(['a', 'c']) },
    { verified: new Set(['a', 'b', 'c']) },
    { verified: new Set(['a', 'c']) },
    { accepted: new Set(['a']) },
  ];
  for (const more of wrong) {
    t.equal(isComplete(tally(more)), false, JSON.stringify(Object.keys(more)));
    t.equal(summarise(tally(more), 2).equal, false);
    t.equal(summarise(tally(more), 2).lines.at(-1), 'The counts differ.');
  }
  t.equal(summarise(tally(), 3).equal, false, 'a prediction is missing');
  t.equal(summarise(tally({ rejected: 1 }), 2).equal, false, 'a signature was wrong');
});

const picture: Picture = {
  step: 'predicting',
  accepted: 3,
  wanted: 12,
  on_socket: 2,
  verified: 1,
  questions: [{ text: 'Will it?', total: 3, percent: 50, label: 'YES', families: 2 }],
};

const makeScreen = (more: object = {}) => {
  const written: string[] = [];
  return { written, screen: { ...more, write: (text: string) => written.push(text) } };
};

t.test('on a terminal the picture is drawn again in place', async (t) => {
  const { written, screen } = makeScreen({ isTTY: true, columns: 60 });
  const view = makeView(screen);
  view.draw(picture);
  t.match(written.join(''), /^\[█{7}░{21}\] {2}25 % {2}predicting\n {2}predictions 3\/12/);
  t.ok(
    written
      .join('')
      .split('\n')
      .every((line) => line.length < 60),
    'no line wraps',
  );
  view.say('a step is done');
  t.equal(written[1], '\x1b[3A\x1b[J', 'three lines are taken away');
  view.draw(picture);
  view.end();
  view.say('below');
  t.equal(written.at(-1), 'below\n', 'the last picture stays');
  t.match(pictureLines(picture)[2], /Will it\? +█{12}·{12} {2}50 % YES, 3 by 2 families/);
});

t.test('elsewhere there are plain lines without control characters', async (t) => {
  const { written, screen } = makeScreen();
  const view = makeView(screen);
  view.say('begin');
  view.draw(picture);
  view.draw(picture);
  view.end();
  const text = written.join('');
  t.notMatch(text, /\x1b/);
  t.match(text, /^begin\n {2}predictions 3\/12, events 2, deliveries verified 1\n {2}Will it\?/);
  const plain = makeScreen();
  const format = '[{bar}] {percentage} %  {note}';
  const progress = makeProgress(plain.screen, format);
  progress.update(1, 4, { note: 'begun' });
  progress.clear();
  progress.update(4, 4, { note: 'done' });
  progress.end();
  t.same(plain.written.join('').split('\n'), [
    '[███████░░░░░░░░░░░░░░░░░░░░░] 25 %  begun',
    '[████████████████████████████] 100 %  done',
    '',
  ]);
  const live = makeScreen({ isTTY: true, columns: 50 });
  const bar = makeProgress(live.screen, format);
  bar.update(1, 1, { note: 'a note that is longer than the terminal is wide' });
  t.ok(live.written.includes('\x1b[?7l'), 'no line wraps');
  const drawn = live.written.length;
  bar.clear();
  t.ok(live.written.length > drawn, 'it is taken away');
  bar.end();
});

t.test('arguments', async (t) => {
  t.match(readDemoArguments([]), {
    url: localUrl(),
    agents: 25,
    data_dir: '.data',
    admin_key_file: '.data/admin-key',
  });
  t.match(readDemoArguments(['--data', '/x', '--agents', '6']), {
    agents: 6,
    admin_key_file: '/x/admin-key',
  });
  t.match(readDemoArguments(['--agents', '5']), /--agents takes/);
  t.match(readDemoArguments(['--agents', '26']), /--agents takes/);
  t.match(readDemoArguments(['--url', 'x']), /--url takes/);
  t.match(readDemoArguments(['--fast']), /Usage/);
  t.match(readDemoArguments(['--help']), /^Usage/);
});
