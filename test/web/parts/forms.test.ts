import { faultsOf } from '../../../src/http/openapi.js';
import type { Route } from '../../../src/http/route.js';
import { common_faults, faultBody, refuse } from '../../../src/kit/fault.js';
import { api_routes } from '../../../src/routes.js';
import { addressText, atFields, faultText, problemOf } from '../../../src/web/parts/forms.js';
import { t } from '../../help/tap.js';

const answerOf = (...given: Parameters<typeof refuse>) =>
  faultBody(refuse(...given), 'r') as unknown as Parameters<typeof faultText>[0];

/** Error codes that only programs get: pages send no key, signature or Idempotency-Key. */
const for_programs = new Set(
  'MISSING_AUTH INVALID_JSON UNSUPPORTED_MEDIA_TYPE HTTP_ONLY HEADERS_TOO_LARGE AMBIGUOUS_AUTH'
    .concat(' KEY_IN_QUERY INVALID_SIGNATURE AGENTS_ONLY IDEMPOTENCY_MISMATCH')
    .split(' '),
);

t.test('the refusals that a form can get are sentences for people', async (t) => {
  const used = (api_routes as readonly Route[]).filter(({ path }) =>
    /^\/api\/(auth\/|me\/(agents|account|sessions|webhooks)|register|admin\/)/.test(path),
  );
  t.ok(used.length >= 30);
  const defs = new Set(used.flatMap(faultsOf).concat(Object.values(common_faults)));
  for (const def of [...defs].filter(({ code }) => !for_programs.has(code))) {
    const message = faultText(answerOf(def));
    t.notMatch(message, /\b(?:body|query|params|headers?|Bearer|JSON)\b|\/api\/|–/, def.code);
    t.match(message, /^[A-Z].{19,}\.$/, def.code);
  }
});

t.test('the message of a field is shown below it as a sentence', async (t) => {
  const fields = [
    { path: 'body.name', message: 'must have at least 2 characters' },
    { path: 'body.range.min', message: 'A range begins below its end.' },
  ];
  const fault = answerOf(common_faults.INVALID_REQUEST, { message: 'Invalid.', fields });
  t.equal(problemOf(fault, 'name'), 'Must have at least 2 characters.');
  t.equal(problemOf(fault, 'range'), 'A range begins below its end.', 'a member of the field');
  t.equal(problemOf(fault, 'nam'), undefined);
  t.equal(problemOf(null, 'name'), undefined);
  t.equal(faultText(fault), 'Must have at least 2 characters.');
  t.equal(faultText(answerOf(common_faults.INTERNAL)), common_faults.INTERNAL.sentence);
  t.equal(addressText(fault), 'Invalid name: must have at least 2 characters.');
  t.equal(addressText(answerOf(common_faults.INTERNAL)), common_faults.INTERNAL.sentence);
});

t.test('a refusal is shown at the field that it is about', async (t) => {
  const taken = answerOf(common_faults.INVALID_API_KEY);
  const codes = { INVALID_API_KEY: 'api_key' };
  t.equal(problemOf(atFields(taken, { codes }), 'api_key'), taken.error);
  t.equal(problemOf(atFields(taken, { codes }), 'name'), undefined);
  t.same(atFields(taken, { codes: { OTHER: 'name' } }), taken);
  const fields = [
    { path: 'body.range.unit', message: 'is required' },
    { path: 'body.range.max', message: 'is required' },
    { path: 'body.ranges', message: 'is required' },
  ];
  const members = { 'range.unit': 'unit', range: 'range_min' };
  const invalid = answerOf(common_faults.INVALID_REQUEST, { fields });
  t.same(
    atFields(invalid, { members }).fields?.map(({ path }) => path),
    ['body.unit', 'body.range_min', 'body.ranges'],
  );
});
