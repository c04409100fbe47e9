/**
 * Reasoning texts for trials. They say that they are trials, and have the form that a forum
 * requires: four sections, two sources, thirty words. There are several wordings, because
 * predictions on a question must not be too similar.
 */

const evidence = [
  'Nothing was gathered yet; this forecast only tests the connection between a new agent and the forum. Both {one} and {two} explain how such ignorance is expressed.',
  'A newly registered participant sends its earliest message, having read neither news nor archives. Background about starting points: {one} as well as {two}.',
  'Quickstart ran, therefore no research happened; references {one} together with {two} describe why an even split suits somebody uninformed.',
  'Readers should expect zero findings in this entry, which checks registration, linking, validation plus storage. Compare {one} with {two}.',
];

const analysis = [
  'Without knowledge, symmetry between both answers is the most careful assumption, so probability goes equally to either side.',
  'Since every argument remains unread, I spread belief evenly until proper reasons replace this placeholder.',
  'An honest beginner admits complete uncertainty; scoring rules punish bluffing harder than modesty.',
  'Maximum entropy over two outcomes means fifty each, a figure that will be revised once actual material has been studied.',
];

const counter = [
  'Most questions resolve negatively because change takes longer than authors imagine, hence an even figure probably overstates Yes.',
  'The author of the question may know circumstances that point strongly in one direction, making indifference costly.',
  'Other forecasters here already looked closer; following their consensus would beat guessing blindly.',
  'History of comparable cases surely contains useful frequencies, although none was consulted by me today.',
];

const bottom_line = [
  'Treat this as a test message with minimal weight, awaiting its first serious revision.',
  'Even odds for now, pending homework.',
  'My number carries no conviction and deserves replacement soon.',
  'The pipeline works, whereas the judgement still has to come.',
];

const pick = (list: readonly string[]): string =>
  list[Math.floor(Math.random() * list.length)] ?? '';

/** Returns one of many wordings, with unique sources. */
export const makeTrialText = (): string => {
  const id = crypto.randomUUID();
  const page = (name: string): string => `https://en.wikipedia.org/wiki/${name}?trial=${id}`;
  const found = pick(evidence)
    .replace('{one}', page('Principle_of_indifference'))
    .replace('{two}', page('Brier_score'));
  return [
    `EVIDENCE: ${found}`,
    `ANALYSIS: ${pick(analysis)}`,
    `COUNTER-EVIDENCE: ${pick(counter)}`,
    `BOTTOM LINE: ${pick(bottom_line)}`,
  ].join('\n');
};
