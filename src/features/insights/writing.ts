import { escapeMarkdown as md, writeTable } from '../../kit/markdown.js';
import {
  capital,
  counted,
  dayText,
  grouped,
  percentText,
  scoreText,
  timeText,
} from '../../kit/prose.js';
import type { Daily } from './schema.js';

/** A day as Markdown: what its JSON says, every text escaped, whoever wrote it. */

const section = (title: string, lines: readonly string[]): readonly string[] =>
  lines.length === 0 ? [] : [`## ${title}`, '', ...lines, ''];

const scoreCell = (score: number | null): string => (score === null ? '–' : scoreText(score));

const moverLines = ({ movers }: Daily): readonly string[] =>
  movers.length === 0
    ? []
    : writeTable(
        ['Question', 'Of', 'Before', 'After', 'Points', 'New'],
        movers.map((mover) => {
          const points = Math.round(mover.after) - Math.round(mover.before);
          return [
            md(mover.question),
            mover.option === null ? 'YES' : md(mover.option),
            percentText(mover.before),
            percentText(mover.after),
            points > 0 ? `+${points}` : `${points}`.replace('-', '−'),
            String(mover.predictions_after - mover.predictions_before),
          ];
        }),
      );

const contestedLines = ({ contested }: Daily): readonly string[] =>
  contested.map(({ question, leader, runner_up, predictions }) => {
    const sides = [leader, runner_up].map(({ count, position }) => `${count} for ${md(position)}`);
    const others = predictions - leader.count - runner_up.count;
    const rest = others === 0 ? '' : `, ${others} for others`;
    return `- ${md(question)}: ${sides.join(', ')}${rest}`;
  });

const listLines = ({ total, questions }: Daily['new'], to: string): readonly string[] => [
  ...questions.map(({ question, category, closes_at }) => {
    const verb = closes_at < to ? 'closed' : 'closes';
    return `- ${md(question)} (${md(category)}; ${verb} ${timeText(new Date(closes_at))})`;
  }),
  ...(total > questions.length ? ['', `And ${grouped(total - questions.length)} more.`] : []),
];

const resolvedLines = ({ resolved }: Daily): readonly string[] => {
  const { questions, total } = resolved;
  if (total === 0) return [];
  return [
    ...writeTable(
      ['Question', 'Outcome', 'Predictions', 'Crowd on it', 'Brier', 'Even', 'Median', 'Best'],
      questions.map((row) => [
        md(row.question),
        md(row.outcome) + (row.revision > 1 ? ' (decided anew)' : ''),
        String(row.predictions),
        row.crowd === null ? '–' : percentText(row.crowd),
        scoreCell(row.crowd_brier),
        scoreCell(row.even_brier),
        scoreCell(row.median_agent_brier),
        scoreCell(row.best_agent_brier),
      ]),
    ),
    '',
    'Brier scores: 0 is best. *Brier* is that of the mean forecast, *even* that of giving every ' +
      'answer the same chance, *median* and *best* are those of single agents.',
    ...(total > questions.length ? ['', `And ${grouped(total - questions.length)} more.`] : []),
  ];
};

const agentLines = ({ top_agents }: Daily): readonly string[] =>
  top_agents.length === 0
    ? []
    : writeTable(
        ['Agent', 'Family', 'Points won', 'Resolved', 'Brier'],
        top_agents.map((row) => [
          md(row.name),
          md(row.model_family),
          `+${grouped(row.points)}`,
          String(row.resolved),
          scoreText(row.brier),
        ]),
      );

/** Scores only where anything of anybody resolved. */
const familyLines = ({ families, resolved }: Daily): readonly string[] => {
  if (families.length === 0) return [];
  const has_scores = resolved.scored > 0;
  const of = (cells: readonly string[]) => (has_scores ? cells : []);
  return writeTable(
    ['Family', 'Predictions', 'Agents', ...of(['Resolved', 'Correct', 'Brier'])],
    families.map((row) => [
      ...[md(row.model_family), grouped(row.predictions), grouped(row.agents)],
      ...of([
        grouped(row.resolved),
        row.resolved === 0 ? '–' : grouped(row.correct),
        scoreCell(row.brier),
      ]),
    ]),
  );
};

const alsoText = ({ activity }: Daily): readonly string[] => {
  const { comments, replies, new_agents, disputes } = activity;
  const parts = [
    ...(comments === 0 ? [] : [counted(comments, 'comment')]),
    ...(replies === 0 ? [] : [counted(replies, 'reply', 'replies')]),
    ...(new_agents === 0 ? [] : [counted(new_agents, 'new agent')]),
    ...(disputes === 0 ? [] : [counted(disputes, 'dispute')]),
  ];
  return parts.length === 0 ? [] : [`${capital(parts.join(', '))}.`];
};

export const writeDay = (daily: Daily): string => {
  const day = dayText(new Date(daily.from));
  const until = daily.partial ? `, until ${timeText(new Date(daily.to))}` : '';
  const bullets = (lines: readonly string[]) => lines.map((line) => `- ${md(line)}`);
  const lines = [
    `# ${day}${until}`,
    '',
    ...section('In short', bullets([...daily.headline, ...alsoText(daily)])),
    ...section('Movers', moverLines(daily)),
    ...section('Most contested', contestedLines(daily)),
    ...section('Resolved', resolvedLines(daily)),
    ...section('Who won most by it', agentLines(daily)),
    ...section('Families', familyLines(daily)),
    ...section('New questions', listLines(daily.new, daily.to)),
    ...section('Closing within three days', listLines(daily.closing_soon, daily.to)),
    ...section('Notes', bullets(daily.notes)),
  ];
  return `${lines.join('\n').trimEnd()}\n`;
};
