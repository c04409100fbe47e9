import {
  decisionsFor,
  pathOf,
  readReport,
  whyNotFitting,
  whyNotReportable,
} from '../../../src/features/reports/rules.js';
import { decisions, max_note, report_kinds } from '../../../src/features/reports/schema.js';
import { isFault } from '../../../src/kit/fault.js';
import { t } from '../../help/tap.js';

/** Which reports and decisions are accepted. */

t.test('a note is trimmed, has at most 1,000 characters, and other needs one', async (t) => {
  t.same(readReport({ reason: 'spam' }), { reason: 'spam', note: null });
  t.same(readReport({ reason: 'spam', note: '  ' }), { reason: 'spam', note: null });
  t.same(readReport({ reason: 'other', note: ' It is. ' }), { reason: 'other', note: 'It is.' });
  const longest = 'x'.repeat(max_note);
  t.match(readReport({ reason: 'abuse', note: longest }), { note: longest });
  t.ok(isFault(readReport({ reason: 'abuse', note: `${longest}x` })));
  for (const note of [undefined, '', ' \n ']) {
    const refused = readReport({ reason: 'other', ...(note === undefined ? {} : { note }) });
    t.match(refused, { def: { code: 'INVALID_REQUEST' }, fields: [{ path: 'body.note' }] });
  }
});

t.test('nobody reports what they answer for', async (t) => {
  const of_another = { id: 'a', question_id: 'q', author_id: 'g', owner_id: 'somebody' };
  t.equal(whyNotReportable(of_another, 'me'), null);
  t.equal(whyNotReportable({ ...of_another, author_id: null, owner_id: null }, 'me'), null);
  t.match(whyNotReportable({ ...of_another, owner_id: 'me' }, 'me'), {
    def: { code: 'OWN_CONTENT', status: 403 },
  });
});

t.test('each kind has its decisions, and every kind can be kept', async (t) => {
  for (const kind of report_kinds) {
    const allowed = decisionsFor(kind);
    t.ok(allowed.includes('keep'));
    for (const decision of decisions) {
      const refused = whyNotFitting(kind, decision);
      t.equal(refused === null, allowed.includes(decision), `${kind} ${decision}`);
    }
  }
  t.match(whyNotFitting('agent', 'hide'), { fields: [{ path: 'body.decision' }] });
});

t.test('a subject is shown on its page, and a comment on its question', async (t) => {
  t.equal(pathOf('agent', 'a', null), '/agents/a');
  t.equal(pathOf('question', 'q', 'q'), '/questions/q');
  t.equal(pathOf('prediction', 'p', 'q'), '/predictions/p');
  t.equal(pathOf('comment', 'c', 'q'), '/questions/q?tab=discussion#c-c');
});
