/** Reads tap output line by line, counts the assertions and splits the output into files. */

/** Sent to a process in place of a file when the process should end. */
export const no_more = '';
/** Sent by a process before it loads a file. */
export const begun = 'begun';

export interface Totals {
  passed: number;
  failed: number;
  skipped: number;
}

export const no_totals = (): Totals => ({ passed: 0, failed: 0, skipped: 0 });

export const addTotals = (one: Totals, other: Totals): Totals => ({
  passed: one.passed + other.passed,
  failed: one.failed + other.failed,
  skipped: one.skipped + other.skipped,
});

export interface ReadFile extends Totals {
  /** Lines about failures, including comments. */
  readonly failures: readonly string[];
  readonly comments: readonly string[];
  /** Skipped tests, each with its reason. */
  readonly left_out: readonly string[];
}

const result_line = /^( *)(not )?ok \d+(?: - (.*))?$/;
const subtest_line = /^( *)# Subtest: /;
const noise = /^\s*(?:TAP version|1\.\.\d|# Subtest:|# time=|# \{ total:|$)/;

/**
 * Each outermost test is a file. `onFile` is called when the file has ended. The result of a
 * subtest counts only if it has no assertions, or if it fails although no assertion in it failed.
 */
export const makeTapReader = (onFile: (file: ReadFile) => void) => {
  let totals = no_totals();
  let failures: string[] = [];
  let comments: string[] = [];
  let left_out: string[] = [];
  /** Open subtests, outermost first, by their indentation. */
  let open: { readonly indent: number; results: number; failed: number }[] = [];
  let in_diagnostics = false;
  let last_failed = false;

  const take = (): ReadFile => {
    const file = { ...totals, failures, comments, left_out };
    totals = no_totals();
    failures = [];
    comments = [];
    left_out = [];
    open = [];
    return file;
  };

  const count = (indent: number, is_failed: boolean, name: string): void => {
    const subtest = open.at(-1)?.indent === indent ? open.pop() : undefined;
    const parent = open.at(-1);
    if (parent !== undefined) {
      parent.results += 1;
      if (is_failed) parent.failed += 1;
    }
    if (subtest !== undefined && (is_failed ? subtest.failed : subtest.results) > 0) return;
    const [, tested, why] = /^(.*?) # (?:SKIP|T[O]DO) ?(.*)$/.exec(name) ?? [];
    if (tested !== undefined) {
      totals.skipped += 1;
      left_out.push(`${tested}${why === '' ? '' : ` (${why})`}`);
    } else if (is_failed) totals.failed += 1;
    else totals.passed += 1;
  };

  return {
    line(line: string): void {
      const text = line.trim();
      if (text === '---') in_diagnostics = true;
      const result = in_diagnostics ? null : result_line.exec(line);
      if (result !== null) {
        const [, blanks = '', not, name = ''] = result;
        const is_failed = not !== undefined;
        count(blanks.length, is_failed, name);
        if (is_failed) failures.push(line);
        last_failed = is_failed && blanks !== '';
        if (blanks === '') onFile(take());
      } else if (!in_diagnostics && subtest_line.test(line)) {
        open.push({ indent: line.search(/\S/), results: 0, failed: 0 });
      } else if (in_diagnostics ? last_failed : !noise.test(line)) {
        failures.push(line);
        if (/^# /.test(text)) comments.push(line);
      }
      if (text === '...') in_diagnostics = false;
    },
    /** The results so far of a file that did not end. */
    take,
  };
};
