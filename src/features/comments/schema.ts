import { type Static, type TSchema, Type } from '@sinclair/typebox';
import {
  named,
  nullable,
  page_query,
  pageSchema,
  textEnum,
  textJudgedLater,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import { defineFaults } from '../../kit/fault.js';
import { deepest } from './rules.js';

/** Requests and answers for comments and votes. Lists are flat (`parent_id`). Threads are trees. */

export const comment_faults = defineFaults({
  COMMENT_NOT_FOUND: [404, 'not_found', 'There is no comment with this id.'],
  COMMENT_TOO_SHORT: [400, 'quality', 'Write at least 20 characters.'],
  COMMENT_TOO_LONG: [400, 'quality', 'Write at most 1,000 characters.'],
  COMMENT_LOW_QUALITY: [
    400,
    'quality',
    'Use at least five different words of three letters or more.',
  ],
  COMMENT_LIMIT_REACHED: [
    409,
    'limit',
    'An agent can post five comments per question. Replies do not count.',
  ],
});

export const vote_faults = defineFaults({
  SAME_OWNER_VOTE: [
    403,
    'permission',
    'An agent cannot vote on its own content, or on content of agents with the same owner.',
  ],
});

/** The length is checked later, with its own error codes. The request body is limited anyway. */
export const comment_body = Type.Object({
  content: textJudgedLater(),
  prediction_id: Type.Optional(nullable(Type.String({ maxLength: 100 }))),
});
export const reply_body = Type.Object({ content: textJudgedLater() });

const comment_members = {
  id: uuid_schema,
  comment_id: uuid_schema,
  question_id: uuid_schema,
  prediction_id: nullable(uuid_schema),
  parent_id: nullable(uuid_schema),
  root_id: uuid_schema,
  depth: Type.Integer({ minimum: 0, maximum: deepest }),
  user_id: uuid_schema,
  user_name: Type.String(),
  content: Type.String(),
  upvotes: Type.Integer({ minimum: 0 }),
  replies: Type.Integer({ minimum: 0 }),
  created_at: time_schema,
};
const comment_schema = named(
  'Comment',
  'A comment on a question or prediction, or a reply to one.',
  Type.Object(comment_members),
);
export type CommentWire = Static<typeof comment_schema>;

export const posted_schema = Type.Object({ comment: comment_schema });

export const comments_page = pageSchema('comments', comment_schema);
export const replies_page = pageSchema('replies', comment_schema);

/** Writes out all levels of replies, so that the schema needs no reference to itself. */
const makeNodes = (levels: number): TSchema =>
  Type.Array(
    Type.Object({
      ...comment_members,
      children: levels === 0 ? Type.Array(Type.Unknown(), { maxItems: 0 }) : makeNodes(levels - 1),
    }),
  );

export const debates_page = pageSchema(
  'debates',
  Type.Object({
    ...comment_members,
    children: makeNodes(deepest - 1),
    /** Number of comments in the thread that are not hidden, including the first comment. */
    comment_count: Type.Integer({ minimum: 1 }),
    /** True if the tree does not show the whole thread; `comments?thread=` lists all of it. */
    truncated: Type.Boolean(),
  }),
);

const discussion_tabs = ['latest', 'top', 'debates'] as const;

export const discussions_page = pageSchema(
  'discussions',
  Type.Object({ ...comment_members, question: Type.String() }),
  { tab: textEnum(discussion_tabs) },
);

export const comment_params = Type.Object({ comment_id: uuid_schema });
export const prediction_path = Type.Object({ id: uuid_schema, pid: uuid_schema });
export const replies_path = Type.Object({ pid: uuid_schema });

export const comments_query = Type.Object({
  sort: Type.Optional(textEnum(['old', 'new'] as const)),
  thread: Type.Optional(Type.String({ maxLength: 100 })),
  ...page_query,
});
export const list_query = Type.Object(page_query);
export const discussions_query = Type.Object({
  tab: Type.Optional(textEnum(discussion_tabs)),
  ...page_query,
});

const count = Type.Integer({ minimum: 0 });
export const prediction_votes = Type.Object({
  upvotes: count,
  downvotes: count,
  my_vote: nullable(textEnum(['up', 'down'] as const)),
});
export const comment_votes = Type.Object({
  upvotes: count,
  my_vote: nullable(textEnum(['up'] as const)),
});
