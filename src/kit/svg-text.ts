/** Measures texts in a picture, so that they are wrapped and cut to fit. */

/**
 * Widths of Inter SemiBold, U+0020 to U+007E, in hundredths of an em. Regular is a bit narrower.
 */
const advances = (
  '25 32 52 64 65 100 66 33 37 37 54 67 32 47 32 38 66 42 62 64 67 61 64 58 64 64 32 33 67 67 67 ' +
  '54 100 73 66 74 72 61 59 75 75 28 58 70 57 92 76 77 65 77 65 65 66 74 73 102 72 71 65 37 38 37 ' +
  '48 47 35 57 62 58 62 59 39 63 61 26 26 57 26 90 61 61 62 62 40 55 35 61 59 84 57 59 57 45 36 45 ' +
  '67'
)
  .split(' ')
  .map(Number);

export interface Face {
  readonly size: number;
  readonly weight: 400 | 600;
}

const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]/u;

/** Width in hundredths of an em. For most letters beyond ASCII it is slightly too large. */
const advanceOf = (character: string): number => {
  const code = character.codePointAt(0) as number;
  const known = advances[code - 32];
  if (known !== undefined) return known;
  if (/\p{M}|\u200d/u.test(character)) return 0;
  return code > 0xffff || wide.test(character) ? 104 : 68;
};

/** Leaves room for readers whose fonts are wider than the one measured here. */
const spare = 1.04;

/** Width in units of the picture, estimated generously. */
export const textWidth = (text: string, { size }: Face): number => {
  let hundredths = 0;
  for (const character of text) hundredths += advanceOf(character);
  return (hundredths * size * spare) / 100;
};

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Returns the text if it fits into `width`, else its start with an ellipsis. */
export const cutText = (text: string, width: number, face: Face): string => {
  if (textWidth(text, face) <= width) return text;
  let kept = '';
  for (const { segment } of graphemes.segment(text)) {
    if (textWidth(`${kept}${segment}…`, face) > width) break;
    kept += segment;
  }
  return `${kept.trimEnd()}…`;
};

/** Breaks a text at spaces into at most `most` lines. Text that does not fit is cut. */
export const wrapText = (
  text: string,
  { width, most, face }: { readonly width: number; readonly most: number; readonly face: Face },
): readonly string[] => {
  const words = text.trim().split(/\s+/);
  const lines: string[] = [];
  let line = '';
  for (const [index, word] of words.entries()) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line === '' || textWidth(longer, face) <= width) {
      line = longer;
      continue;
    }
    if (lines.length === most - 1) {
      line = [line, ...words.slice(index)].join(' ');
      break;
    }
    lines.push(cutText(line, width, face));
    line = word;
  }
  return [...lines, cutText(line, width, face)];
};
