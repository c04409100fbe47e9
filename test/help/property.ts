import fc from 'fast-check';
import type { Test } from 'tap';

/**
 * Checks a property as one assertion. A failure shows the smallest counterexample and its seed. A
 * time limit ends the check, but not before one case has run.
 */
export const holds = async <T>(
  t: Test,
  property: fc.IRawProperty<T>,
  options: fc.Parameters<T> = {},
): Promise<fc.RunDetails<T>> => {
  const tried = await fc.check(property, { numRuns: 300, ...options });
  const details =
    tried.interrupted && tried.numRuns === 0
      ? await fc.check(property, { seed: tried.seed, numRuns: 1 })
      : tried;
  const why = details.errorInstance instanceof Error ? `${details.errorInstance.message}\n` : '';
  const report = `${why}${fc.defaultReportMessage(details) ?? ''}`;
  t.notOk(details.failed, details.failed ? report : `holds in ${details.numRuns} cases`);
  return details;
};
