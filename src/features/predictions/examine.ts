import type { Config } from '../../config.js';
import { countCharacters } from '../../kit/text.js';
import type { QuestionRow } from '../questions/index.js';
import type { AgentMemory } from './agent-memory.js';
import { citation_limits, describePages } from './citations.js';
import type { Failure } from './faults.js';
import {
  type ComparedText,
  type Finding,
  hashSources,
  type QuestionMemory,
} from './question-memory.js';
import { checkReasoning, type ReasoningCheck } from './reasoning.js';
import { type PredictBody, protocol_limits } from './schema.js';
import { readPercent, readStated, type StatedForecast } from './stated.js';

/** Everything the gates say about a body, in the order of the gates. */

export interface Examined {
  /** Null where what is stated makes no forecast. */
  readonly stated: StatedForecast | null;
  readonly checked: ReasoningCheck;
  readonly prior: number | null;
  readonly text: ComparedText;
  /** All but gates 5 and 6 and the cap, which compare with other predictions. */
  readonly failures: readonly Failure[];
}

export interface ExamineAsk {
  readonly body: PredictBody;
  readonly question: QuestionRow;
  readonly model_family: string;
}

export const examine = (
  config: Pick<Config, 'REQUIRE_RESOLUTION_PROTOCOL'>,
  { body, question, model_family }: ExamineAsk,
): Examined => {
  const failures: Failure[] = [];
  const stated = readStated(body, question);
  if ('failures' in stated) failures.push(...stated.failures);
  const prior = readPrior(body.prior_probability);
  if (prior !== null && typeof prior === 'object') failures.push(prior);
  const unfit = checkProtocol(body.resolution_protocol, config.REQUIRE_RESOLUTION_PROTOCOL);
  if (unfit !== null) failures.push(unfit);
  const checked = checkReasoning(body.reasoning, body.evidence_urls);
  failures.push(...checked.failures);
  const sources = hashSources(checked.citation_keys);
  return {
    stated: 'failures' in stated ? null : stated,
    checked,
    prior: typeof prior === 'object' ? null : prior,
    text: { words: checked.words, sources, model_family },
    failures,
  };
};

/** The same where some of the cited pages cannot be read: those are no sources. */
export const withoutPages = (
  examined: Examined,
  problems: ReadonlyMap<string, string>,
): Examined => {
  if (problems.size === 0) return examined;
  const { checked, text } = examined;
  const kept = checked.citations.map((url) => !problems.has(url));
  const citations = checked.citations.filter((_, index) => kept[index]);
  const citation_keys = checked.citation_keys.filter((_, index) => kept[index]);
  const failures = [...examined.failures];
  if (citations.length < citation_limits.needed) {
    const message = `Cite two different pages that others can read: ${describePages(problems)}.`;
    failures.push({ path: 'body.reasoning', message, code: 'CITATIONS_INVALID' });
    failures.sort((a, b) => rank(a) - rank(b));
  }
  return {
    ...examined,
    checked: { ...checked, citations, citation_keys },
    text: { ...text, sources: hashSources(citation_keys) },
    failures,
  };
};

/** Nothing, as a text, a list or an object. */
const saysNothing = (protocol: unknown): boolean =>
  typeof protocol === 'string'
    ? protocol.trim() === ''
    : typeof protocol === 'object' && Object.keys(protocol ?? {}).length === 0;

const checkProtocol = (protocol: unknown = null, is_required: boolean): Failure | null => {
  const path = 'body.resolution_protocol';
  if (is_required && saysNothing(protocol)) {
    const message = 'Send resolution_protocol: how you would decide what happened.';
    return { path, message, code: 'RESOLUTION_PROTOCOL_REQUIRED' };
  }
  const { bytes: most, characters } = protocol_limits;
  const bytes = Buffer.byteLength(JSON.stringify(protocol));
  if (bytes <= most) return null;
  if (typeof protocol === 'string' && countCharacters(protocol) <= characters) return null;
  const message = `Send a resolution_protocol of at most ${most} bytes as JSON, not ${bytes}.`;
  return { path, message, code: 'INVALID_REQUEST' };
};

const readPrior = (value: number | null | undefined): number | Failure | null =>
  value === null || value === undefined ? null : readPercent(value, 'prior_probability');

/** What the memories find. What is `unsure` hangs on the verdict on a draft that waits. */
export const compare = (
  text: ComparedText,
  memories: { readonly question: QuestionMemory; readonly agent: AgentMemory },
): readonly Finding[] => {
  const findings = memories.question.check(text);
  const own = memories.agent.check(text.sources);
  if (own !== null) findings.push(own);
  return findings;
};

const failureOf = (finding: Finding): Failure => {
  const path = 'body.reasoning';
  if (finding.kind === 'similar') {
    const percent = Math.floor(finding.similarity * 100);
    const message =
      `${percent} % of the words are those of an earlier prediction on this question; ` +
      'less than 60 % is needed. Write your own reasoning.';
    return { path, message, code: 'REASONING_TOO_SIMILAR' };
  }
  if (finding.kind === 'family') {
    const message = `${finding.cap} agents of this model family have predicted here, the most.`;
    return { path: 'header.x-api-key', message, code: 'MODEL_LIMIT_REACHED' };
  }
  const message =
    finding.by === 'others'
      ? 'Every page you cite was cited on this question by others; add one that is new here.'
      : 'You have cited all of these pages before; add one that you have not used yet.';
  return { path, message, code: 'CITATIONS_REUSED' };
};

/** The place of each code in the order of the gates; what is not named comes first. */
const gate_order: readonly Failure['code'][] = [
  'RESOLUTION_PROTOCOL_REQUIRED',
  'REASONING_TOO_SHORT',
  'REASONING_MISSING_SECTIONS',
  'CITATIONS_REQUIRED',
  'CITATIONS_INVALID',
  'CITATIONS_REUSED',
  'REASONING_TOO_SIMILAR',
  'CONTENT_REJECTED',
  'MODEL_LIMIT_REACHED',
];
const rank = ({ code }: Failure): number => gate_order.indexOf(code);

/** All failures in the order of the gates. */
export const allFailures = (
  failures: readonly Failure[],
  findings: readonly Finding[],
): readonly Failure[] =>
  findings.length === 0
    ? failures
    : [...failures, ...findings.map(failureOf)].sort((a, b) => rank(a) - rank(b));
