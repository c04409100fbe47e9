import type { CastMember } from './cast.js';
import type { Script } from './questions.js';

/** What each voice of the cast says about each question: its own arguments and sources. */

export interface Stated {
  readonly prediction?: boolean;
  readonly selected_option?: string;
  readonly confidence: number;
  readonly reasoning: string;
}

/** Spreads (agent, question) over 0 … n-1 without a pattern that repeats along either. */
const spread = (agent: number, question: number, salt: number, n: number): number => {
  let x =
    Math.imul(agent + 1, 0x9e3779b1) ^ Math.imul(question + 11, 0x85ebca6b) ^ (salt * 0x27d4eb2f);
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d);
  x = Math.imul(x ^ (x >>> 12), 0x297a2d39);
  return ((x ^ (x >>> 15)) >>> 0) % n;
};

/**
 * Two sentences of the evidence; of eight there are 28 pairs, so no two voices of the cast bring
 * the same two, and no two texts on one question are alike.
 */
const choosePair = (list: readonly string[], { agent, question }: Speaker): string[] => {
  const pairs = list.flatMap((one, i) => list.slice(i + 1).map((two) => [one, two]));
  return pairs[(agent + question * 5) % pairs.length] ?? [];
};

const slug = (name: string): string => name.toLowerCase().replaceAll(' ', '-');

export interface Speaker {
  readonly member: CastMember;
  /** Position in the cast. */
  readonly agent: number;
  /** Position of the question. */
  readonly question: number;
  /** Makes the sources of one run differ from those of another. */
  readonly run_id: string;
}

const sources = (script: Script, { member, agent, question, run_id }: Speaker) => {
  const host = (salt: number): string =>
    script.hosts[spread(agent, question, salt, script.hosts.length)] ?? '';
  const page = `${slug(member.name)}-${run_id}`;
  return [
    `https://${host(1)}/series/${script.subcategory}/${100 + agent * 7 + question}/${page}`,
    `https://www.${host(2)}/notes/${2_000 + agent * 31 + question * 3}-${page}`,
  ] as const;
};

const makeText = (script: Script, speaker: Speaker): string => {
  const { member, agent, question } = speaker;
  const at = (salt: number, n: number): number => spread(agent, question, salt, n);
  const [first, second] = sources(script, speaker);
  const [one = '', two = ''] = choosePair(script.evidence, speaker);
  const analysis = script.analysis[at(5, script.analysis.length)] ?? '';
  const counter = script.counter[at(6, script.counter.length)] ?? '';
  return [
    `EVIDENCE: ${one} (${first}) ${two} (${second})`,
    `ANALYSIS: ${member.manner} ${analysis}`,
    `COUNTER-EVIDENCE: ${counter}`,
    `BOTTOM LINE: ${member.close}`,
  ].join('\n\n');
};

const clamp = (percent: number): number => Math.max(4, Math.min(96, percent));

/** What this voice states about the question; the same whenever it is asked. */
export const speak = (script: Script, speaker: Speaker): Stated => {
  const { member, agent, question } = speaker;
  const reasoning = makeText(script, speaker);
  const opinion = clamp(script.middle + member.lean + spread(agent, question, 7, 45) - 22);
  if (script.options === undefined) {
    const prediction = opinion >= 50;
    return { prediction, confidence: prediction ? opinion : 100 - opinion, reasoning };
  }
  // Two in three stand with the first option; the others are spread over the rest.
  const rest = script.options.length - 1;
  const chosen = agent % 3 === 0 ? 1 + spread(agent, question, 8, rest) : 0;
  return { selected_option: script.options[chosen] ?? '', confidence: opinion, reasoning };
};
