/** Which of two forms of one answer a caller wants: JSON for programs, Markdown for reading. */

export const markdown_type = 'text/markdown; charset=utf-8';

interface Range {
  readonly type: string;
  readonly q: number;
}

const readAccept = (accept: string): readonly Range[] =>
  accept
    .slice(0, 1_000)
    .split(',')
    .map((part) => {
      const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
      const q = parameters.find((parameter) => parameter.startsWith('q='));
      const weight = q === undefined ? 1 : Number(q.slice(2));
      return { type, q: Number.isFinite(weight) ? weight : 0 };
    });

const weightOf = (ranges: readonly Range[], type: string): number => {
  const [family = ''] = type.split('/');
  for (const wanted of [type, `${family}/*`, '*/*']) {
    const found = ranges.find((range) => range.type === wanted);
    if (found !== undefined) return found.q;
  }
  return 0;
};

/**
 * `?format=` first, then what `Accept` names with more weight (RFC 9110 §12.5.1); JSON where both
 * weigh the same, and where neither is accepted.
 */
export const wantsMarkdown = (format: string | undefined, accept: string): boolean => {
  if (format !== undefined) return format === 'markdown';
  if (accept === '') return false;
  const ranges = readAccept(accept);
  return weightOf(ranges, 'text/markdown') > weightOf(ranges, 'application/json');
};
