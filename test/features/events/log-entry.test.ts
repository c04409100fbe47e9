import { packEntry, unpackEntry } from '../../../src/features/events/log-entry.js';
import { makeEntry, saidOf } from '../../help/log.js';
import { t } from '../../help/tap.js';

const id = '0190a000-0000-7000-8000-00000000000';

t.test('an entry says the same after it was packed, whatever it has no place for', async (t) => {
  for (let which = 0; which < 64; which += 1) {
    const pick = (bit: number, text: string): string | null => (which & (1 << bit) ? text : null);
    const entry = makeEntry(which + 1, {
      event: 'prediction.placed',
      question_id: pick(0, `${id}1`),
      agent_id: pick(1, `${id}2`),
      audience_id: pick(2, `${id}3`),
      category: pick(3, 'economics'),
      subcategory: pick(4, 'rates'),
      owner_id: pick(5, `${id}4`),
    });
    const [head, body] = packEntry(entry);
    const unpacked = unpackEntry(entry.offset, head, body);
    if (unpacked === null) return t.fail(`not read: ${head}`);
    t.strictSame(saidOf(unpacked), entry, head);
    t.strictSame(packEntry(unpacked), [head, body]);
  }
});

t.test('what was not packed by the relay is no entry', async (t) => {
  const [head] = packEntry(makeEntry(1));
  const wrong = [
    '',
    ' ',
    head.slice(1),
    head.slice(0, -1),
    `${head} `,
    `x${head}`,
    head.slice(0, 40),
  ];
  for (const text of wrong) t.equal(unpackEntry(1, text, '{}'), null, JSON.stringify(text));
});
