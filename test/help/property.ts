import fc from 'fast-check';
import type { Test } from 'tap';

/** Checks a property as one assertion; a failure shows the smallest counterexample and its seed. */
export const holds = async <T>(
  t: Test,
  property: fc.IRawProperty<T>,
  options: fc.Parameters<T> = {},
): Promise<fc.RunDetails<T>> => {
  const details = await fc.check(property, { numRuns: 300, ...options });
  const why = details.errorInstance instanceof Error ? `${details.errorInstance.message}\n` : '';
  const report = `${why}${fc.defaultReportMessage(details) ?? ''}`;
  t.notOk(details.failed, details.failed ? report : `holds in ${details.numRuns} cases`);
  return details;
};
