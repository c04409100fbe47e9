import { isUtf8 } from 'node:buffer';

/**
 * Reads a request body as JSON and refuses what no honest client sends: bytes that are not UTF-8,
 * NUL, lone surrogates, numbers that are not finite, nesting deeper than 16 and keys that reach
 * for prototypes. Linear in the size of the body.
 */

export type ParsedJson =
  | { readonly ok: true; readonly value: unknown; readonly text: string }
  | { readonly ok: false; readonly problem: string };

const deepest = 16;
const refused_keys = new Set(['__proto__', 'constructor', 'prototype']);

const findTextProblem = (text: string): string | null => {
  if (text.includes('\0')) return 'A text contains a NUL character.';
  if (!text.isWellFormed()) return 'A text contains a lone surrogate.';
  return null;
};

/** What is wrong with a parsed value, or null. */
export const findJsonProblem = (value: unknown, depth = 0): string | null => {
  if (typeof value === 'string') return findTextProblem(value);
  if (typeof value === 'number') {
    return Number.isFinite(value) ? null : 'A number is too large to be represented.';
  }
  if (typeof value !== 'object' || value === null) return null;
  if (depth >= deepest) return `The body is nested deeper than ${deepest} levels.`;
  if (Array.isArray(value)) {
    for (const item of value) {
      const problem = findJsonProblem(item, depth + 1);
      if (problem !== null) return problem;
    }
    return null;
  }
  for (const key in value) {
    if (refused_keys.has(key)) return `The key "${key}" is not allowed.`;
    const problem =
      findTextProblem(key) ?? findJsonProblem((value as Record<string, unknown>)[key], depth + 1);
    if (problem !== null) return problem;
  }
  return null;
};

/** Only the syntax is looked at; what is refused in a value is for `findJsonProblem`. */
export const readJson = (raw: Buffer): ParsedJson => {
  if (raw.length === 0) return { ok: false, problem: 'The body is empty; send a JSON object.' };
  if (!isUtf8(raw)) return { ok: false, problem: 'The body is not valid UTF-8.' };
  const text = raw.toString('utf8');
  try {
    return { ok: true, value: JSON.parse(text), text };
  } catch {
    return { ok: false, problem: 'The body is not valid JSON.' };
  }
};

export const parseJson = (raw: Buffer): ParsedJson => {
  const read = readJson(raw);
  if (!read.ok) return read;
  const problem = findJsonProblem(read.value);
  return problem === null ? read : { ok: false, problem };
};
