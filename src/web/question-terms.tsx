import type { ComponentChildren } from 'preact';
import type { Operations } from '#client/wire.js';
import { Ago, Time } from './parts/figures.js';
import { linkTo } from './parts/lists.js';
import { OutLink, Prose, safeUrl } from './parts/prose.js';
import { valueText } from './parts/question-row.js';
import { type Question, status_words } from './question-chart.js';

/** A question's topic, status, resolution terms, changes, and links to share it. */

type Changes = Operations['listChanges']['returns']['changes'];

type Taxonomy = Operations['getTaxonomy']['returns'];

export const Head = ({
  question,
  taxonomy,
  now,
}: {
  question: Question;
  taxonomy: Taxonomy;
  now: Date;
}) => {
  const { status, category, subcategory, tags, closes_at } = question;
  const pillar = taxonomy.find(({ slug }) => slug === category);
  const part = pillar?.subcategories.find(({ slug }) => slug === subcategory);
  return (
    <>
      <p class="row crumbs">
        <span class={`pill ${status}`}>{status_words[status]}</span>
        {status === 'open' && (
          <span>
            closes <Ago at={closes_at} now={now} />
          </span>
        )}
        <a href={linkTo('/questions', { category })}>{pillar?.name ?? category}</a>
        {subcategory !== null && (
          <a href={linkTo('/questions', { category, subcategory })}>{part?.name ?? subcategory}</a>
        )}
        {tags.map((tag) => (
          <a key={tag} href={linkTo('/questions', { tag })} dir="auto">
            {tag}
          </a>
        ))}
      </p>
      <h1 dir="auto">{unbroken(question.question)}</h1>
    </>
  );
};

/** Keeps words such as `GPT-6` on one line. */
const unbroken = (text: string): string => text.replaceAll(/(?<=\w)-(?=\w)/g, '\u2011');

const Source = ({ question }: { question: Question }) => {
  const { resolution_source: source, resolution_url: url } = question;
  if (source === null && url === null) return <>Not given</>;
  const text = source ?? url ?? '';
  return safeUrl(url) === null ? <bdi>{text}</bdi> : <OutLink url={url ?? ''}>{text}</OutLink>;
};

const act_words: Readonly<Record<string, string>> = {
  'question.publish': 'Published',
  'question.update': 'Edited',
  'question.close': 'Closed',
  'question.reopen': 'Reopened',
  'question.resolve': 'Resolved',
  'question.void': 'Voided',
};

/** Lists the changes that admins made after the question was published. */
const ChangeList = ({ changes }: { changes: Changes }) => (
  <details id="changes">
    <summary>Changes ({changes.length})</summary>
    <ul>
      {changes.map(({ at, act, changed }) => (
        <li key={at}>
          {act_words[act] ?? act}
          {changed.length > 0 && `: ${changed.map((one) => one.replaceAll('_', ' ')).join(', ')}`},{' '}
          <Time at={at} />
        </li>
      ))}
    </ul>
  </details>
);

const rangeText = (question: Question, range: NonNullable<Question['range']>): string => {
  const ends = [range.min, range.max].map((end) => valueText(end, question)).join(' to ');
  return range.open_min || range.open_max ? `${ends}, or beyond` : ends;
};

export const Terms = ({
  question,
  changes,
  now,
}: {
  question: Question;
  changes: Changes;
  now: Date;
}) => {
  const { range, description, status, source } = question;
  const is_ahead = new Date(question.closes_at) > now;
  const closing = status === 'open' ? 'Closes' : is_ahead ? 'Planned close' : 'Closed';
  const rows: readonly (readonly [string, ComponentChildren])[] = [
    ['Source', <Source key="source" question={question} />],
    ['Opened', <Time key="opened" at={question.opens_at} />],
    [closing, <Time key="closes" at={question.closes_at} />],
    ['Resolves by', <Time key="due" at={question.resolution_date} />],
    ['Range', range === null ? null : rangeText(question, range)],
    ['Weight', `${question.weight} of 5`],
    ['Imported from', source === null ? null : <bdi key="from">{source}</bdi>],
  ];
  return (
    <section aria-labelledby="terms-title" data-live="terms">
      <h2 id="terms-title">How it resolves</h2>
      {description.trim() === '' ? (
        <p class="soft">No resolution criteria are given.</p>
      ) : (
        <Prose text={description} />
      )}
      <dl class="terms">
        {rows
          .filter(([, value]) => value !== null)
          .map(([name, value]) => (
            <>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </>
          ))}
      </dl>
      {changes.length > 0 && <ChangeList changes={changes} />}
    </section>
  );
};

export const Share = ({
  question: { id },
  public_url,
}: {
  question: Question;
  public_url: string;
}) => {
  const api = `/api/questions/${id}`;
  const links = [
    [`/embed-builder?question=${id}`, 'Embed'],
    [`/questions/${id}/feed.xml`, 'Feed'],
    [`${api}/chart.svg`, 'Chart as SVG'],
    [`${api}/chart.png`, 'Chart as PNG'],
    [`${api}/intel-brief?format=markdown`, 'Brief'],
    [`/api/export/predictions?format=csv&question_id=${id}`, 'Forecasts as CSV'],
    [api, 'JSON'],
  ] as const;
  return (
    <section aria-labelledby="share-title">
      <h2 id="share-title">Share and export</h2>
      <p class="row">
        <label for="address" class="sr">
          Address of this page
        </label>
        <input id="address" readonly value={`${public_url}/questions/${id}`} />
        <span data-copy="address" />
      </p>
      <ul class="links">
        {links.map(([href, label]) => (
          <li key={href}>
            <a href={href}>{label}</a>
          </li>
        ))}
      </ul>
    </section>
  );
};
