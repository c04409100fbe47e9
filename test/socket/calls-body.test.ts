import fc from 'fast-check';
import { t } from 'tap';
import { bodyTextOf } from '../../src/socket/calls.js';
import { holds } from '../help/property.js';

t.test('the text of the body is found wherever it stands', async (t) => {
  const cases: [string, string][] = [
    ['{}', ''],
    [' { } ', ''],
    ['{"body":{}}', '{}'],
    ['{"body":1}', '1'],
    ['{"body": null , "id":1}', 'null'],
    ['\n{\t"id" : 1 ,\r\n "body" : [ 1 , 2 ] }', '[ 1 , 2 ]'],
    ['{"route":"\\"body\\":1","body":"\\\\"}', '"\\\\"'],
    ['{"headers":{"body":"no"},"x":[{"body":1}],"body":{"body":2}}', '{"body":2}'],
    ['{"body":{"a":"}]\\"{"},"id":"body"}', '{"a":"}]\\"{"}'],
    ['{"body":1,"body":2}', '2'],
    ['{"b\\u006fdy":-1.5e3}', '-1.5e3'],
    ['{"x\\u006fdy":1}', ''],
  ];
  for (const [json, body] of cases) t.equal(bodyTextOf(json), body, json);
});

t.test('it is the text of the value that the parser finds', async (t) => {
  const key = fc.oneof(fc.constantFrom('body', 'op', 'id', '"', '\\', ''), fc.string());
  const property = fc.property(
    fc.dictionary(key, fc.jsonValue(), { noNullPrototype: true }),
    fc.constantFrom(undefined, 1, '\t'),
    (frame, space) => {
      const found = bodyTextOf(JSON.stringify(frame, null, space));
      const expected = Object.hasOwn(frame, 'body') ? JSON.stringify(frame['body']) : '';
      return (found === '' ? '' : JSON.stringify(JSON.parse(found))) === expected;
    },
  );
  await holds(t, property, { numRuns: 2_000 });
});
