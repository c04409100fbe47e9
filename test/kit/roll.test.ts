import { test } from 'tap';
import { type Member, Roll } from '../../src/kit/roll.js';

interface Named extends Member<Named> {
  readonly name: string;
}

const named = (name: string): Named => ({ name, before: null, after: null });
const namesOf = (roll: Roll<Named>): string => [...roll].map(({ name }) => name).join('');

test('members come and go from every place, and those that are left keep their order', async (t) => {
  const roll = new Roll<Named>();
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(named) as [Named, Named, Named, Named];
  t.equal(namesOf(roll), '');
  for (const member of [a, b, c, d]) roll.add(member);
  t.same([namesOf(roll), roll.size], ['abcd', 4]);
  t.ok(roll.delete(b));
  t.same([namesOf(roll), roll.size], ['acd', 3]);
  t.same([b.before, b.after], [null, null], 'what is taken out keeps nobody');
  t.notOk(roll.delete(b), 'it is gone already');
  roll.delete(a);
  roll.delete(d);
  t.same([namesOf(roll), roll.size], ['c', 1]);
  roll.add(a);
  t.equal(namesOf(roll), 'ca', 'it may come again');
  roll.delete(c);
  roll.delete(a);
  t.same([namesOf(roll), roll.size], ['', 0]);
});

test('the member at hand may be taken out while all are gone through', async (t) => {
  const roll = new Roll<Named>();
  for (const name of 'abc') roll.add(named(name));
  const seen: string[] = [];
  for (const member of roll) {
    seen.push(member.name);
    roll.delete(member);
  }
  t.same([seen.join(''), roll.size], ['abc', 0]);
});
