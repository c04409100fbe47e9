import { faultsOf } from '../../../src/http/openapi.js';
import type { Route } from '../../../src/http/route.js';
import { sayFirst } from '../../../src/http/validation.js';
import { common_faults, faultBody, refuse } from '../../../src/kit/fault.js';
import { api_routes } from '../../../src/routes.js';
import { faultText, inWords, problemOf } from '../../../src/web/parts/forms.js';
import { t } from '../../help/tap.js';

t.test('no refusal of the account routes reaches a page in the words of the API', async (t) => {
  const used = (api_routes as readonly Route[]).filter(({ path }) =>
    /^\/api\/(auth\/|me\/(agents|account|sessions)|register)/.test(path),
  );
  t.ok(used.length >= 18);
  const defs = new Set(used.flatMap(faultsOf).concat(Object.values(common_faults)));
  const technical = /\b(?:body|query|params|header)\b|\/api\/|key header|Bearer|JSON|–|request/i;
  const answerOf = (...given: Parameters<typeof refuse>) =>
    faultBody(refuse(...given), 'r') as unknown as Parameters<typeof faultText>[0];
  for (const def of defs) {
    const message = faultText(answerOf(def));
    t.notMatch(message, technical, def.code);
    t.ok(message.length > 20, message);
  }
  for (const route of used) {
    for (const name of Object.keys(route.body?.properties ?? {})) {
      const fields = [{ path: `body.${name}`, message: 'is required' }];
      const message = sayFirst('body', fields);
      const fault = answerOf(common_faults.INVALID_REQUEST, { message, fields });
      t.notMatch(faultText(fault), technical, `${route.id} ${name}`);
      t.notMatch(problemOf(fault, name), technical, `${route.id} ${name}`);
    }
  }
});

t.test('a page says a code in its own words, at the field that it is about', async (t) => {
  const fault = {
    ...({ error: 'API prose', code: 'TAKEN', status: 409, category: 'conflict' } as const),
    retryable: false,
  };
  const texts = { TAKEN: 'Somebody has it.', 'body.name': 'Choose a name.' };
  const placed = inWords(fault, texts, { TAKEN: 'name' });
  t.equal(problemOf(placed, 'name'), 'Somebody has it.', 'the code, not what the field is for');
  t.equal(problemOf(placed, 'other'), undefined);
  const loose = inWords(fault, texts);
  t.equal(loose === null ? '' : faultText(loose), 'Somebody has it.');
  const of_field = {
    ...fault,
    code: 'INVALID_REQUEST',
    fields: [{ path: 'body.name', message: '' }],
  };
  t.equal(problemOf(inWords(of_field, texts), 'name'), 'Choose a name.');
});
