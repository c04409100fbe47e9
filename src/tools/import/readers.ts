/** Values of records, from JSON or from the text of a CSV cell, brought to what a field holds. */

export interface Problem {
  readonly problem: string;
}
export const wrong = (problem: string): Problem => ({ problem });
export const isProblem = (value: unknown): value is Problem =>
  typeof value === 'object' && value !== null && 'problem' in value;

export const show = (value: unknown): string =>
  JSON.stringify(value)?.slice(0, 60) ?? String(value);

const readText = (name: string, value: unknown): string | Problem => {
  if (typeof value !== 'string' && typeof value !== 'number') {
    return wrong(`${name} is ${show(value)} and not a text`);
  }
  const text = String(value).trim();
  if (text.includes('\0') || !text.isWellFormed()) {
    return wrong(`${name} holds characters that no text can have (NUL or half a surrogate pair)`);
  }
  return text;
};

const readList = (name: string, value: unknown): readonly string[] | Problem => {
  const parts = Array.isArray(value) ? value : typeof value === 'string' ? value.split('|') : null;
  if (parts === null) return wrong(`${name} is ${show(value)} and not a list`);
  const texts = parts.map((part) => readText(name, part));
  return texts.find(isProblem) ?? (texts as string[]).filter((text) => text !== '');
};

const date_only = /^\d{4}-\d{2}-\d{2}$/;
const date_time =
  /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)\s*(Z|[+-]\d{2}:?\d{2})?$/i;

/** A date is midnight UTC; a time without a zone is UTC; a day that does not exist is refused. */
export const readTime = (name: string, value: unknown): string | Problem => {
  const text = typeof value === 'string' ? value.trim() : '';
  const match = date_time.exec(text);
  const iso = date_only.test(text)
    ? `${text}T00:00:00Z`
    : match === null
      ? ''
      : `${match[1]}T${match[2]}${match[3]?.toUpperCase() ?? 'Z'}`;
  const time = new Date(iso);
  const day = new Date(`${iso.slice(0, 10)}T00:00:00Z`);
  const real = !Number.isNaN(day.getTime()) && day.toISOString().startsWith(iso.slice(0, 10));
  if (iso === '' || !real || Number.isNaN(time.getTime())) {
    return wrong(`${name} is ${show(value)} and not a date or a time like 2027-03-31T12:00:00Z`);
  }
  return time.toISOString();
};

const readWhole = (name: string, value: unknown): number | Problem => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isInteger(number)
    ? number
    : wrong(`${name} is ${show(value)} and not a whole number`);
};

const readFlag = (name: string, value: unknown): boolean | Problem => {
  const word = String(value).trim().toLowerCase();
  if (['true', 'yes', '1'].includes(word)) return true;
  if (['false', 'no', '0'].includes(word)) return false;
  return wrong(`${name} is ${show(value)} and not true or false`);
};

export const readers = {
  text: readText,
  name: readText,
  list: readList,
  time: readTime,
  whole: readWhole,
  flag: readFlag,
} as const;
