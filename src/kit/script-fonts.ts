import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import decompress from 'woff2-encoder/decompress';

/**
 * Finds the fonts that a picture needs besides Inter. Packages bring them as compressed parts, each
 * with some characters, and only the parts that are needed are unpacked.
 */

const require = createRequire(import.meta.url);

interface Script {
  readonly characters: RegExp;
  readonly font: string;
}

/** Scripts whose fonts come as two whole files. */
const whole: readonly (Script & { readonly package: string })[] = [
  { characters: /\p{sc=Arab}+/gu, font: 'Noto Sans Arabic', package: 'noto-sans-arabic' },
  { characters: /\p{sc=Hebr}+/gu, font: 'Noto Sans Hebrew', package: 'noto-sans-hebrew' },
  { characters: /\p{sc=Deva}+/gu, font: 'Noto Sans Devanagari', package: 'noto-sans-devanagari' },
];

/** Scripts whose fonts come in parts. These fonts are thin without a stroke. */
const in_parts: readonly Script[] = [
  { characters: /\p{sc=Hang}+/gu, font: 'kr' },
  { characters: /[\p{sc=Hira}\p{sc=Kana}]+/gu, font: 'jp' },
  { characters: /[\p{sc=Hani}\u3000-\u303f\uff00-\uffef]+/gu, font: 'sc' },
];

const isIn = (text: string, { characters }: Script): boolean => text.search(characters) >= 0;

const wholeFiles = (text: string): readonly string[] =>
  whole
    .filter((script) => isIn(text, script))
    .flatMap(({ font, package: name }) =>
      ['400Regular', '600SemiBold'].map((style) =>
        require.resolve(
          `@expo-google-fonts/${name}/${style}/${font.replaceAll(' ', '')}_${style}.ttf`,
        ),
      ),
    );

/**
 * Returns the fonts for the Han characters of a text, the best first. They look different in
 * Japanese, Korean and Chinese texts, and no font has all of them.
 */
const hanFonts = (text: string): readonly string[] => {
  const written = in_parts.filter((script) => script.font !== 'sc' && isIn(text, script));
  return [...new Set([...written.map((one) => one.font), 'sc', 'jp', 'kr'])];
};

interface Part {
  readonly file: string;
  readonly ranges: readonly (readonly [from: number, to: number])[];
}

const nameOf = (font: string): string => `@fontsource-variable/noto-sans-${font}`;

/** Reads the parts of a font from its stylesheet. */
const partsOf = (font: string): readonly Part[] => {
  const css = readFileSync(require.resolve(`${nameOf(font)}/index.css`), 'utf8');
  return [...css.matchAll(/url\(\.\/(files\/[^)]+)\)[^}]*unicode-range: ([^;]+);/g)].map(
    ([, file = '', ranges = '']) => ({
      file: require.resolve(`${nameOf(font)}/${file}`),
      ranges: ranges.split(',').map((range) => {
        const [from = '', to = from] = range.replace('U+', '').split('-');
        return [Number.parseInt(from, 16), Number.parseInt(to, 16)];
      }),
    }),
  );
};

/** Unpacks a part into a folder, unless it is there. Returns the path of the font. */
const unpack = async (file: string, folder: string): Promise<string> => {
  const target = path.join(folder, `${path.basename(file, '.woff2')}.ttf`);
  if (existsSync(target)) return target;
  writeFileSync(`${target}.part`, await decompress(readFileSync(file)));
  renameSync(`${target}.part`, target);
  return target;
};

/** Returns the paths of the fonts, besides Inter, that a text needs. */
export const findFonts = async (text: string, folder: string): Promise<readonly string[]> => {
  const known = new Map<string, readonly Part[]>();
  const partOf = (font: string, code: number): string | undefined => {
    const parts = known.get(font) ?? partsOf(font);
    known.set(font, parts);
    return parts.find(({ ranges }) => ranges.some(([from, to]) => from <= code && code <= to))
      ?.file;
  };
  const han_fonts = hanFonts(text);
  const files = new Set<string>();
  for (const character of new Set(text)) {
    const code = character.codePointAt(0) as number;
    const own = in_parts.find((script) => isIn(character, script))?.font;
    for (const font of own === 'sc' ? han_fonts : own === undefined ? [] : [own]) {
      const file = partOf(font, code);
      if (file === undefined) continue;
      files.add(file);
      break;
    }
  }
  const parts = await Promise.all([...files].map((file) => unpack(file, folder)));
  return [...wholeFiles(text), ...parts];
};

const stroke_width = '0.05em';

/** Sets one font for the whole text, because a text is shaped as a whole. */
const markText = (text: string): string => {
  const font = whole.find((script) => isIn(text, script))?.font;
  const marked = in_parts.reduce(
    (all, { characters }) => all.replaceAll(characters, '<tspan class="thin">$&</tspan>'),
    text,
  );
  return font === undefined ? marked : `<tspan font-family="${font}">${marked}</tspan>`;
};

/**
 * Names the fonts of scripts, and adds strokes to characters whose font is thin, in the colour of
 * their text.
 */
export const markScripts = (svg: string): string => {
  const strokes = [...svg.matchAll(/\.(c-[a-z]+\d*)\{fill:(#[0-9a-f]+)\}/g)].map(
    ([, name, colour]) => `.${name} .thin{stroke:${colour};stroke-width:${stroke_width}}`,
  );
  return svg
    .replace('</style>', `${strokes.join('')}</style>`)
    .replaceAll(/(<text[^>]*>)([^<]*)(?=<\/text>)/g, (_, start: string, text: string) => {
      return start + markText(text);
    });
};
