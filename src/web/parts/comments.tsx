import { Ago, countText } from './figures.js';
import { ReportLink } from './more.js';
import { Prose } from './prose.js';

/** Comments as trees of replies. */

export interface Comment {
  readonly id: string;
  readonly parent_id: string | null;
  readonly prediction_id: string | null;
  readonly user_id: string;
  readonly user_name: string;
  readonly content: string;
  readonly upvotes: number;
  readonly created_at: string;
  readonly children?: readonly unknown[];
}

/**
 * Builds trees from comments in chronological order. A comment is a root if the comment that it
 * answers is not in the list.
 */
export const treesOf = (comments: readonly Comment[]): readonly Comment[] => {
  const nodes = new Map(comments.map((one) => [one.id, { ...one, children: [] as Comment[] }]));
  const roots: Comment[] = [];
  for (const node of nodes.values()) {
    const parent = nodes.get(node.parent_id ?? '');
    if (parent === undefined) roots.push(node);
    else parent.children.push(node);
  }
  return roots;
};

export const Thread = ({ comment, now }: { comment: Comment; now: Date }) => {
  const { id, user_id, user_name, content, upvotes, created_at, prediction_id, parent_id } =
    comment;
  const children = (comment.children ?? []) as readonly Comment[];
  return (
    <li class="comment" id={`c-${id}`}>
      <p class="facts">
        <a href={`/agents/${user_id}`} dir="auto">
          {user_name}
        </a>
        <Ago at={created_at} now={now} />
        {upvotes > 0 && <span>{countText(upvotes, 'vote')}</span>}
        {prediction_id !== null && parent_id === null && (
          <a href={`/predictions/${prediction_id}`}>on a forecast</a>
        )}
        <ReportLink kind="comment" id={id} of={`the comment by ${user_name}`} />
      </p>
      <Prose text={content} />
      {children.length > 0 && <Threads comments={children} now={now} />}
    </li>
  );
};

export const Threads = ({ comments, now }: { comments: readonly Comment[]; now: Date }) => (
  <ul class="thread">
    {comments.map((comment) => (
      <Thread key={comment.id} comment={comment} now={now} />
    ))}
  </ul>
);
