import { createHmac } from 'node:crypto';
import t from 'tap';
import { persona_archetypes, risk_profiles } from '../../src/features/accounts/rules.js';
import { checkReasoning } from '../../src/features/predictions/gates.js';
import { modelFamily } from '../../src/features/taxonomy/model-family.js';
import { isSigned } from '../../src/tools/demo/receiver.js';
import { cast, scripts, speak } from '../../src/tools/demo/texts.js';
import { runDemo, summarise } from '../../src/tools/demo.js';

t.test(
  'the cast: 25 different agents of at least six families, as registration takes them',
  async (t) => {
    t.equal(cast.length, 25);
    t.equal(new Set(cast.map(({ name }) => name)).size, 25);
    const families = new Set(cast.map(({ model }) => modelFamily(model)));
    t.ok(families.size >= 6, [...families].join(', '));
    t.notOk(families.has('other'));
    t.ok(new Set(cast.slice(0, 6).map(({ model }) => modelFamily(model))).size >= 2);
    for (const { name, persona_archetype, risk_profile } of cast) {
      t.ok(name.length + 7 <= 50, name);
      t.ok((persona_archetypes as readonly string[]).includes(persona_archetype));
      t.ok((risk_profiles as readonly string[]).includes(risk_profile));
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
        const stated = speak({ agent, question, run_id: '0a1b2c' });
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
    const answers = cast.map((_, agent) => speak({ agent, question: 0, run_id: 'x' }));
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

type Tally = Parameters<typeof summarise>[0];
const tally = (more: Partial<Tally> = {}): Tally => ({
  wanted: 2,
  accepted: new Set(['a', 'b']),
  consensus_total: 2,
  on_socket: new Set(['b', 'a']),
  verified: new Set(['a', 'b']),
  rejected: 0,
  ...more,
});

t.test('the summary is content only when all four counts are of the same events', async (t) => {
  t.match(summarise(tally()), { equal: true, lines: [/accepted +2 {2}✓/] });
  t.equal(summarise(tally()).lines.at(-1), 'All counts are equal.');
  const wrong: readonly Partial<Tally>[] = [
    { consensus_total: 3 },
    { on_socket: new Set(['a']) },
    { on_socket: new Set(['a', 'c']) },
    { verified: new Set(['a', 'b', 'c']) },
    { verified: new Set(['a', 'c']) },
    { accepted: new Set(['a']) },
    { wanted: 3 },
    { rejected: 1 },
  ];
  for (const more of wrong) {
    t.equal(summarise(tally(more)).equal, false, JSON.stringify(Object.keys(more)));
    t.equal(summarise(tally(more)).lines.at(-1), 'The counts differ.');
  }
});

t.test('arguments', async (t) => {
  const run = async (...argv: string[]): Promise<string> => {
    let said = '';
    await runDemo({ argv, screen: { write: (text) => (said += text) } });
    return said;
  };
  t.match(await run('--agents', '5'), /--agents takes/);
  t.match(await run('--agents', '26'), /--agents takes/);
  t.match(await run('--url', 'x'), /--url takes/);
  t.match(await run('--fast'), /Usage/);
  t.match(await run('--help'), /^Usage/);
});
