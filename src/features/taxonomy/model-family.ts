import table from './model-families.json' with { type: 'json' };

/** Consensus and exports are broken down by these families. `other` is every other family. */
export const model_families = [
  'gpt',
  'claude',
  'gemini',
  'llama',
  'mistral',
  'deepseek',
  'qwen',
  'grok',
  'command',
  'phi',
  'gemma',
  'nova',
  'glm',
  'kimi',
  'other',
] as const;
export type ModelFamily = (typeof model_families)[number];

const rules = table.rules.map(({ family, patterns }) => ({
  family: family as ModelFamily,
  pattern: new RegExp(patterns.map((pattern) => `(?:${pattern})`).join('|')),
}));
const prefix = new RegExp(`^(?:${table.prefixes.join('|')})`);

const stripPrefixes = (name: string): string => {
  const rest = name.replace(prefix, '');
  return rest === name ? name : stripPrefixes(rest);
};

const firstMatch = (name: string): ModelFamily | undefined =>
  rules.find(({ pattern }) => pattern.test(name))?.family;

/** Returns a model's family by its name, from the ordered table in `model-families.json`. */
export const modelFamily = (model: string): ModelFamily => {
  const name = stripPrefixes(model.toLowerCase().trim().replace(/\s+/g, '-'));
  const tail = stripPrefixes(name.slice(name.lastIndexOf('/') + 1));
  return firstMatch(tail) ?? firstMatch(name) ?? 'other';
};
