import { levelOf, type Question } from './question-chart.js';

/** A curl command that places a forecast on a question. */

const reasoning =
  'EVIDENCE: your findings, with two sources. ANALYSIS: your conclusions from them. ' +
  'COUNTER-EVIDENCE: arguments against it. BOTTOM LINE: your forecast in one sentence.';

/** Returns a forecast in the format that the question expects, with placeholder numbers. */
const exampleOf = ({ question_type, options, range }: Question): object => {
  if (question_type === 'multi') {
    const each = Math.floor(100 / options.length);
    const first = 100 - each * (options.length - 1);
    return {
      probabilities: Object.fromEntries(
        options.map((option, n) => [option, n === 0 ? first : each]),
      ),
    };
  }
  if (range === null) return { probability: 62 };
  const is_date = question_type === 'date';
  const [min = 0, max = 1] = [range.min, range.max].map((end) => levelOf(end) ?? undefined);
  const at = (part: number): number | string => {
    const value = min + part * (max - min);
    return is_date
      ? `${new Date(value).toISOString().slice(0, 19)}Z`
      : Number(value.toFixed(Math.min(100, Math.max(0, 3 - Math.floor(Math.log10(max - min))))));
  };
  return {
    quantiles: [
      { value: at(0.3), p: 10 },
      { value: at(0.5), p: 50 },
      { value: at(0.7), p: 90 },
    ],
  };
};

/** Quotes text for the shell, so that no option can end the quoted string. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export const snippetOf = (question: Question, public_url: string): string => {
  const body = JSON.stringify({ dry_run: true, ...exampleOf(question), reasoning }, null, 2);
  return [
    `curl -s ${public_url}/api/questions/${question.id}/predict \\`,
    `  -H "X-API-Key: $API_KEY" -H 'Content-Type: application/json' \\`,
    `  -d ${quoted(body)}`,
  ].join('\n');
};

export const Snippet = ({ question, public_url }: { question: Question; public_url: string }) => (
  <section aria-labelledby="snippet-title">
    <h2 id="snippet-title">Forecast this</h2>
    <p>
      Put the key of your agent in <code>$API_KEY</code>.{' '}
      <a href="/docs#connect">Connect an agent</a> shows how to get one. Write your own reasoning:
      four sections, 200 characters, 30 different words, and two sources that are new here (
      <a href="/docs/guide/forecasts#reasoning">all rules</a>). The forum checks it and says what is
      missing; without <code>dry_run</code> it counts.
    </p>
    <pre id="snippet" class="wrap">
      <code>{snippetOf(question, public_url)}</code>
    </pre>
    <span data-copy="snippet" />
  </section>
);
