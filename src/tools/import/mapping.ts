import { z } from 'zod';
import { field_names } from './item.js';
import type { SourceRecord } from './records.js';
import { season_fields } from './season.js';

/**
 * A mapping turns the records of somebody else's file into the import's own fields. It is a JSON
 * file: `fields` names for each own field where its value comes from, and `subjects` is an ordered
 * table of words that decides the subcategory; the first rule with a word in the text wins.
 */

const field_rule = z.union([
  z.string(),
  z.strictObject({
    /** The first of these source fields that is not empty. */
    from: z.union([z.string(), z.array(z.string()).min(1)]),
    /** HTML becomes plain text. */
    plain: z.boolean().optional(),
    /** A fraction of 0 to 1 becomes whole percent. */
    percent: z.boolean().optional(),
  }),
  z.strictObject({
    /** Text with `{source_field}` holes; parts around empty ones close up. */
    template: z.string(),
    plain: z.boolean().optional(),
  }),
  z.strictObject({ constant: z.unknown() }),
]);

const subject_table = z.strictObject({
  /** Source fields that are searched, one after the other: a word in the first decides. */
  in: z.array(z.string()).min(1),
  rules: z.array(
    z.strictObject({
      subcategory: z.string(),
      /** Words or phrases, whole and in any case; a `*` at the end stands for any ending. */
      words: z.array(z.string().min(2)).min(1),
    }),
  ),
  /** Where no rule has a word. */
  fallback: z.strictObject({ category: z.string(), subcategory: z.string().optional() }),
});

const fieldsOf = (names: readonly string[]) =>
  z
    .record(z.string(), field_rule)
    .refine((rules) => Object.keys(rules).every((name) => names.includes(name)), {
      message: `only these fields can be filled: ${names.join(', ')}`,
    });

const mapping_schema = z.strictObject({
  about: z.string().optional(),
  fields: fieldsOf(field_names),
  subjects: subject_table.optional(),
  /** Forecasts that each record holds beside its question, taken with --forecasts. */
  forecasts: z.array(fieldsOf(Object.keys(season_fields.forecast))).optional(),
  /** How the question of each record came out, taken with --resolutions. */
  resolution: fieldsOf(Object.keys(season_fields.resolution)).optional(),
});

export type MappingFile = z.infer<typeof mapping_schema>;
export type Mapping = (record: SourceRecord) => SourceRecord;

type FieldRule = z.infer<typeof field_rule>;

const textOf = (value: unknown): string =>
  value === undefined || value === null ? '' : typeof value === 'object' ? '' : String(value);

const entities: Readonly<Record<string, string>> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", apos: "'", nbsp: ' ' },
};

/** Links keep their address, paragraphs their breaks; other marks go. */
export const toPlainText = (html: string): string =>
  html
    .replace(/<a\b[^>]*\bhref="([^"]*)"[^>]*>(.*?)<\/a>/gis, '$2 ($1)')
    .replace(/<br\s*\/?>/gi, '\n')
    .replace(/<\/(p|div|li|h[1-6]|tr)>/gi, '\n')
    .replace(/<li\b[^>]*>/gi, '- ')
    .replace(/<\/?[a-z][^>]*>/gi, '')
    .replace(/&(#?\w+);/g, (whole, name: string) => entities[name.toLowerCase()] ?? whole);

/** Line ends of every kind become one; no line ends in blanks; at most one empty line in a row. */
const tidyLines = (text: string): string =>
  text
    .replace(/\r\n?/g, '\n')
    .replace(/[ \t]+\n/g, '\n')
    .replace(/\n[ \t]+(?=\n)/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();

/**
 * The digits are cut first, so that 0.285 is 28.5 %, a half up. One percent goes as 0.01, because 1
 * could be either. What is no fraction stays.
 */
const toPercent = (value: unknown): unknown => {
  const fraction = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof fraction !== 'number' || !(fraction >= 0 && fraction <= 1)) return value;
  const percent = Math.round(Number((100 * fraction).toPrecision(12)));
  return percent === 1 ? 0.01 : percent;
};

const applyRule = (rule: FieldRule, record: SourceRecord): unknown => {
  if (typeof rule === 'string') return record[rule];
  if ('constant' in rule) return rule.constant;
  const finish = (text: string): string =>
    tidyLines(rule.plain === true ? toPlainText(text) : text);
  if ('template' in rule) {
    return finish(rule.template.replace(/\{(\w+)\}/g, (_, name: string) => textOf(record[name])));
  }
  const names = typeof rule.from === 'string' ? [rule.from] : rule.from;
  const value = names.map((name) => record[name]).find((found) => textOf(found).trim() !== '');
  if (rule.percent === true) return toPercent(value);
  return typeof value === 'string' ? finish(value) : value;
};

const escapeRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** `\b` knows only ASCII letters; names of places and people have others. */
const wordPattern = (words: readonly string[]): RegExp => {
  const parts = words.map((word) =>
    word.endsWith('*') ? `${escapeRegExp(word.slice(0, -1))}\\p{L}*` : escapeRegExp(word),
  );
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${parts.join('|')})(?![\\p{L}\\p{N}])`, 'iu');
};

interface Subject {
  readonly category?: string;
  readonly subcategory?: string;
}

const makeSubjectFinder = (table: z.infer<typeof subject_table>) => {
  const rules = table.rules.map(({ subcategory, words }) => ({
    subcategory,
    pattern: wordPattern(words),
  }));
  return (record: SourceRecord): Subject => {
    for (const field of table.in) {
      const text = textOf(record[field]);
      const rule = rules.find(({ pattern }) => pattern.test(text));
      if (rule !== undefined) return { subcategory: rule.subcategory };
    }
    const { category, subcategory } = table.fallback;
    return { category, ...(subcategory === undefined ? {} : { subcategory }) };
  };
};

const readMappingFile = (content: unknown): MappingFile => {
  const parsed = mapping_schema.safeParse(content);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(
      (issue) => `${issue.path.join('.')}: ${issue.message}`,
    );
    throw new Error(`The mapping is not right: ${problems.join('; ')}`);
  }
  return parsed.data;
};

const applyRules = (rules: Readonly<Record<string, FieldRule>>, record: SourceRecord) =>
  Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, applyRule(rule, record)]));

/** A mapping from its file's content; throws a sentence that says what is wrong with the file. */
export const makeMapping = (content: unknown): Mapping => {
  const { fields, subjects } = readMappingFile(content);
  const findSubject = subjects === undefined ? undefined : makeSubjectFinder(subjects);
  return (record) => ({ ...findSubject?.(record), ...applyRules(fields, record) });
};

export interface SeasonMapping {
  /** Those that state something. */
  forecasts(record: SourceRecord): readonly SourceRecord[];
  /** None while the question is not decided. */
  resolutions(record: SourceRecord): readonly SourceRecord[];
}

const states = (record: SourceRecord, names: readonly string[]): boolean =>
  names.some((name) => textOf(record[name]).trim() !== '' || Array.isArray(record[name]));

/** What the same mapping file says of forecasts and outcomes. */
export const makeSeasonMapping = (content: unknown): SeasonMapping => {
  const { forecasts = [], resolution = {} } = readMappingFile(content);
  return {
    forecasts: (record) =>
      forecasts
        .map((rules) => applyRules(rules, record))
        .filter((made) => states(made, ['prediction', 'probability', 'selected_option'])),
    resolutions: (record) =>
      [applyRules(resolution, record)].filter((made) => states(made, ['resolved_to', 'outcome'])),
  };
};
