import {
  type Failure,
  hasFailures,
  prediction_faults,
  refuseFailures,
} from '../../../src/features/predictions/faults.js';
import { common_faults } from '../../../src/kit/fault.js';
import { t } from '../../help/tap.js';

t.test('the gates have their order, status and category', async (t) => {
  const gates = Object.values(prediction_faults);
  const table = gates.map(({ code, status, category }) => [code, status, category]);
  t.same(table, [
    ['PREDICTION_NOT_FOUND', 404, 'not_found'],
    ['DUPLICATE_PREDICTION', 409, 'conflict'],
    ['INVALID_OPTION', 400, 'validation'],
    ['INVALID_CONFIDENCE', 400, 'validation'],
    ['INVALID_DISTRIBUTION', 400, 'validation'],
    ['RESOLUTION_PROTOCOL_REQUIRED', 400, 'quality'],
    ['REASONING_TOO_SHORT', 400, 'quality'],
    ['REASONING_MISSING_SECTIONS', 400, 'quality'],
    ['CITATIONS_REQUIRED', 400, 'quality'],
    ['CITATIONS_INVALID', 400, 'quality'],
    ['CITATIONS_REUSED', 400, 'quality'],
    ['REASONING_TOO_SIMILAR', 409, 'quality'],
    ['CONTENT_REJECTED', 400, 'quality'],
    ['MODEL_LIMIT_REACHED', 409, 'limit'],
  ]);
});

t.test('failures make one refusal: the first gives its code, all are listed', async (t) => {
  const failures: Failure[] = [
    { path: 'body.reasoning', message: 'No sources.', code: 'CITATIONS_REQUIRED' },
    { path: 'body.confidence', message: 'Too sure.', code: 'INVALID_CONFIDENCE' },
  ];
  if (!hasFailures(failures)) throw new Error('there are two');
  const fault = refuseFailures(failures);
  t.equal(fault.def, prediction_faults.CITATIONS_REQUIRED);
  t.equal(fault.message, 'No sources.');
  t.same(fault.fields, failures);
  const shape: Failure = { path: 'body.reasoning', message: 'Too long.', code: 'INVALID_REQUEST' };
  t.equal(refuseFailures([shape]).def, common_faults.INVALID_REQUEST);
  t.equal(hasFailures([]), false);
});
