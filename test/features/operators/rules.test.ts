import fc from 'fast-check';
import {
  findClaim,
  findProblem,
  readKeys,
  validKey,
} from '../../../src/features/operators/rules.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';
import { directoryOf, makeKey, rfc_key, signRequest } from './operator.js';

const now_s = 1_618_884_480;
const keyOf = (one = rfc_key) => {
  const keys = readKeys(directoryOf(one).body, now_s) ?? new Map();
  const key = validKey(keys, one.keyid, now_s);
  if (key === undefined) throw new Error('the key is not in its directory');
  return key;
};

/** The test vector of RFC 9421, appendices B.2 and B.2.6. */
const vector = {
  method: 'POST',
  url: 'https://example.com/foo?param=Value&Pet=dog',
  headers: {
    date: 'Tue, 20 Apr 2021 02:07:55 GMT',
    'content-type': 'application/json',
    'content-digest':
      'sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:',
    'content-length': '18',
    'signature-input':
      'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length")' +
      ';created=1618884473;keyid="test-key-ed25519"',
    signature:
      'sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:',
  },
  body: '{"hello": "world"}',
};
const fields = ['date', 'content-type', 'content-length'];
const claim = { label: 'sig-b26', origin: 'https://example.com', keyid: rfc_key.keyid, fields };

t.test('the vector of the RFC is right, and nothing that differs from it', async (t) => {
  const by = { key: keyOf(), now_s };
  t.equal(await findProblem(vector, claim, by), null);
  t.match(await findProblem({ ...vector, method: 'PUT' }, claim, by), /verification failed/);
  const elsewhere = { ...vector, url: 'https://example.org/foo?param=Value&Pet=dog' };
  t.match(await findProblem(elsewhere, claim, by), /verification failed/);
  const dated = {
    ...vector,
    headers: { ...vector.headers, date: 'Tue, 20 Apr 2021 02:07:56 GMT' },
  };
  t.match(await findProblem(dated, claim, by), /verification failed/);
  t.match(await findProblem(vector, claim, { key: keyOf(makeKey()), now_s }), /failed/);
});

t.test('a signature is good from a minute before it was made to a day after', async (t) => {
  const { key, created_s } = { key: keyOf(), created_s: 1_618_884_473 };
  const at = (s: number) => findProblem(vector, claim, { key, now_s: created_s + s });
  t.equal(await at(-60), null);
  t.match(await at(-61), /future/);
  t.equal(await at(86_400 + 60), null);
  t.match(await at(86_400 + 61), /too old/);
});

t.test('a digest that is covered is that of the body', async (t) => {
  const by = { key: keyOf(), now_s };
  const digested = { ...claim, fields: [...fields, 'content-digest'] };
  t.equal(await findProblem(vector, digested, by), null);
  t.match(await findProblem({ ...vector, body: '{"hello": "World"}' }, digested, by), /body/);
  const headers = { ...vector.headers, 'content-digest': 'md5=:AAAA:' };
  t.match(await findProblem({ ...vector, headers }, digested, by), /body/, 'no digest we know');
});

t.test('what a signature has to cover before it names an operator', async (t) => {
  const url = 'https://forum.example/api/me';
  const headers = { 'x-api-key': 'sk_1' };
  const origin = 'https://agents.example';
  const sign = (over: object = {}) => signRequest({ url, headers, origin, key: rfc_key, ...over });
  t.match(findClaim(await sign()), { label: 'op', origin, keyid: rfc_key.keyid });
  const as_string = { fields: ['@authority', 'signature-agent', 'x-api-key'] };
  t.match(findClaim(await sign(as_string)), { origin }, 'the older form of Signature-Agent');
  t.match(findClaim(await sign({ origin: `${origin}/` })), { origin });
  const agent = 'signature-agent;key="op"';
  for (const [what, over] of Object.entries({
    'the key of the agent': { fields: ['@authority', agent] },
    'the site': { fields: [agent, 'x-api-key'] },
    'its operator': { fields: ['@authority', 'x-api-key'] },
    'the purpose': { tag: 'other' },
    'an https origin': { origin: 'http://agents.example' },
    'an origin': { origin: 'https://agents.example/some/path' },
    'an origin of sane length': { origin: `https://${'a'.repeat(200)}.example` },
  })) {
    t.equal(findClaim(await sign(over)), null, what);
  }
  const { authorization = '', ...bearer } = await signRequest({
    url,
    origin,
    key: rfc_key,
    headers: { authorization: 'Bearer sk_1' },
    fields: ['@authority', agent, 'authorization'],
  });
  t.match(findClaim({ ...bearer, authorization }), { origin }, 'a key as a Bearer token');
});

t.test('whatever the headers are, there is a claim or none', async (t) => {
  await holds(
    t,
    fc.property(fc.string(), fc.string(), (input, agent) => {
      findClaim({ 'signature-input': input, 'signature-agent': agent, 'x-api-key': 'sk_1' });
    }),
  );
});

t.test('a directory is read for the Ed25519 keys that have not expired', async (t) => {
  const [one, two, three] = [makeKey(), makeKey(), makeKey()];
  const rsa = { kty: 'RSA', n: 'AQAB', e: 'AQAB' };
  const listed = [
    rsa,
    null,
    7,
    { ...one.jwk, x: 'short' },
    { ...one.jwk, kid: 'ignored' },
    { ...two.jwk, exp: now_s },
    { ...three.jwk, nbf: now_s + 1, exp: now_s + 2 },
  ];
  const keys = readKeys(JSON.stringify({ keys: listed }), now_s) ?? new Map();
  t.same([...keys.keys()], [one.keyid, three.keyid]);
  const isValid = (second: number) => validKey(keys, three.keyid, now_s + second) !== undefined;
  t.same([0, 1, 2].map(isValid), [false, true, false], 'by the time of the request');
  for (const text of ['', '[]', 'null', '{"keys":{}}', '{"keys":']) {
    t.equal(readKeys(text, now_s), null, text);
  }
  const many = Array.from({ length: 33 }, makeKey);
  t.equal(readKeys(directoryOf(...many).body, now_s)?.size, 32);
});
