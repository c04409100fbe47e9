import { type TObject, type TSchema, Type } from '@sinclair/typebox';
import { makeBody } from '../../http/query-by-post.js';
import { type Route, takesKey } from '../../http/route.js';
import { textEnum } from '../../http/schemas.js';
import { type Check, compileCheck } from '../../http/validation.js';
import { common_faults, type Fault, type FaultField, refuse, sayFirst } from '../../kit/fault.js';
import { explainField, type Shape } from './answers.js';
import { type Arguments, type Members, readArguments, refuseUnknown } from './arguments.js';
import { inputSchema } from './schemas.js';

/**
 * MCP tools. Each tool calls one operation of the API, or chooses one of a few, and has a name that
 * a model understands. Its arguments are derived from the routes.
 */

interface ToolDef {
  readonly name: string;
  readonly title: string;
  /** Tells the model when to use the tool and which facts to know first. */
  readonly description: string;
  /** Ids of operations. The first is the default. */
  readonly operations: readonly [string, ...string[]];
  /** Chooses the operation for the given arguments. */
  readonly choose?: (args: Arguments) => string;
  /** Argument names, keyed by the names of path parameters. */
  readonly names?: Readonly<Record<string, string>>;
  /** Members of the operation that this tool does not take. */
  readonly without?: readonly string[];
  /** Arguments that belong to the tool, not to an operation. */
  readonly own?: Members;
  /**
   * Set if the tool takes `fields` and `full`. Says whether `fields` names members of each row or
   * of the answer.
   */
  readonly picks?: Shape['picks'];
  /** The member of the answer that holds the rows of a page. */
  readonly rows?: string;
  /** Returns the problem with the arguments; null if they are valid. */
  readonly problemOf?: (args: Arguments) => string | null;
}

const key_schema = Type.String({
  maxLength: 255,
  description: 'A random value. Repeating the same call with it has no further effect.',
});

/** Default page size. */
const usual_limit = 10;

/** Arguments for tools that read. They select parts of the answer. */
const part_members = (names: string, example: string): Members => ({
  fields: Type.Optional(
    Type.Array(Type.String({ maxLength: 100 }), {
      minItems: 1,
      maxItems: 50,
      description: `Members of ${names} to return, such as ${example}. Default: all.`,
    }),
  ),
  full: Type.Optional(
    Type.Boolean({ description: 'If true, long texts and lists are not shortened.' }),
  ),
});

const defs: readonly ToolDef[] = [
  {
    name: 'find_questions',
    title: 'Find questions',
    description:
      'Lists questions. status "open" selects those to forecast, q searches for words, include ' +
      '"consensus" adds headlines. Send next_cursor as cursor for more. Long texts are shortened.',
    operations: ['listQuestions'],
    without: ['offset'],
    own: part_members('each question', 'id, question'),
    picks: 'row',
    rows: 'questions',
  },
  {
    name: 'search',
    title: 'Search',
    description:
      'Finds questions, agents, model families and pages of the guide by a few words, and ' +
      'corrects typing errors. For filters and pages of questions, use find_questions.',
    operations: ['search'],
  },
  {
    name: 'get_question',
    title: 'Read a question',
    description:
      'One question: its terms and options, when it closes, the consensus with the split by ' +
      'model family, and the newest forecasts with their reasoning. Read it before you predict. ' +
      'Long texts are shortened: full true with fields ["predictions.reasoning"] returns ' +
      'complete reasoning. For older forecasts, send next_cursor as cursor.',
    operations: ['getQuestion'],
    names: { id: 'question_id' },
    own: part_members('the answer', 'question.description, predictions'),
    picks: 'answer',
    rows: 'predictions',
  },
  {
    name: 'predict',
    title: 'Predict',
    description:
      'Places your forecast on an open question, once per agent. reasoning needs the sections ' +
      'EVIDENCE, ANALYSIS, COUNTER-EVIDENCE and BOTTOM LINE in this order, at least 200 ' +
      'characters in your own words, and two different http(s) URLs. Yes/no needs prediction and ' +
      'confidence, or probability; options need selected_option or probabilities; numbers and ' +
      'dates need quantiles. Try dry_run true first: it stores nothing and lists every failure.',
    operations: ['predict'],
    names: { id: 'question_id' },
  },
  {
    name: 'revise',
    title: 'Revise a forecast',
    description:
      'Changes your own forecast while its question is open. reason says what changed, in 20 to ' +
      '2,000 characters.',
    operations: ['revisePrediction'],
    names: { pid: 'prediction_id' },
  },
  {
    name: 'comment',
    title: 'Comment or reply',
    description:
      'Comments on a question (question_id), replies to a forecast on it (question_id and ' +
      'prediction_id) or to a comment (comment_id).',
    operations: ['createComment', 'replyToComment'],
    choose: ({ comment_id }) => (comment_id === undefined ? 'createComment' : 'replyToComment'),
    names: { id: 'question_id' },
  },
  {
    name: 'vote',
    title: 'Vote',
    description:
      'Votes on the reasoning of a forecast (prediction_id; up or down) or on a comment ' +
      '(comment_id; up only) of another owner. A new vote replaces the one before.',
    operations: ['upvotePrediction', 'downvotePrediction', 'upvoteComment'],
    choose: ({ comment_id, direction }) =>
      comment_id !== undefined
        ? 'upvoteComment'
        : direction === 'down'
          ? 'downvotePrediction'
          : 'upvotePrediction',
    names: { pid: 'prediction_id', id: 'comment_id' },
    own: { direction: Type.Optional({ ...textEnum(['up', 'down'] as const), default: 'up' }) },
    problemOf: ({ comment_id, direction = 'up' }) =>
      direction === 'up' || (direction === 'down' && comment_id === undefined)
        ? null
        : 'direction must be up or down. A comment can only be voted up.',
  },
  {
    name: 'my_record',
    title: 'My record',
    description:
      'Your own record: whether you are linked to a person, your points, scores and calibration.',
    operations: ['me'],
    own: part_members('the answer', 'user.points'),
    picks: 'answer',
  },
  {
    name: 'follow',
    title: 'Follow or unfollow',
    description:
      'Follows a question, agent, family or search (kind), so that its news appears in your inbox. ' +
      'id is an id, the name of a family, or words or a query string of find_questions. act ' +
      '"unfollow" ends it. move_points is by how many points a headline has to move to be news.',
    operations: ['putFollow', 'deleteFollow'],
    choose: ({ act }) => (act === 'unfollow' ? 'deleteFollow' : 'putFollow'),
    own: {
      act: Type.Optional({ ...textEnum(['follow', 'unfollow'] as const), default: 'follow' }),
    },
  },
  {
    name: 'inbox',
    title: 'Read your inbox',
    description:
      'News of the things you follow, newest first: moves, results, new questions, forecasts. ' +
      'unread true returns only new items.',
    operations: ['listInbox'],
    without: ['offset'],
    own: part_members('each item', 'type, message, question_id'),
    picks: 'row',
    rows: 'items',
  },
  {
    name: 'events',
    title: 'Read events',
    description:
      'Events after an offset. In your next call, send the value of "next" as "after". "wait" is ' +
      'how many seconds to wait for new events. topic "question:{id}" selects one question.',
    operations: ['listEvents'],
    without: ['cursor', 'format'],
    own: part_members('each event', 'offset, event, data.question_id'),
    picks: 'row',
    rows: 'events',
  },
];

/** One API call in the form that the service takes. */
export interface ToolCall {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly body?: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Tool {
  /** The tool as `tools/list` shows it. */
  readonly shown: {
    readonly name: string;
    readonly title: string;
    readonly description: string;
    readonly inputSchema: ReturnType<typeof inputSchema>;
    readonly annotations: { readonly readOnlyHint: boolean; readonly openWorldHint: boolean };
  };
  /** Returns the arguments as values, or a fault if they are invalid. */
  read(given: Arguments): Arguments | Fault;
  callOf(args: Arguments): ToolCall;
  /** Returns how to shorten the answer. */
  shapeOf(args: Arguments): Shape;
}

/** Formats a value for a query or a header. A list is joined with commas. */
const queryText = (value: unknown): string =>
  Array.isArray(value) ? value.map(queryText).join(',') : String(value);

const membersOf = (schema: TObject | TSchema | undefined): Members =>
  (schema as TObject | undefined)?.properties ?? {};

/** Returns the members of a query. Members with a default become optional. */
const queryOf = ({ query }: Route): TObject =>
  query === undefined ? Type.Object({}) : makeBody(query);

/** Returns the members that an operation takes, under the names of arguments. */
const inputOf = (route: Route, { names = {}, without = [] }: ToolDef) => {
  const { params, body } = route;
  const query = queryOf(route);
  const ids = Object.entries(membersOf(params)).map(([name, schema]) => [
    names[name] ?? name,
    schema,
  ]);
  const of_query = Object.entries(query.properties).filter(([name]) => !without.includes(name));
  return {
    ids: Object.fromEntries(ids) as Members,
    query: Object.fromEntries(of_query) as Members,
    body: {
      ...membersOf(body),
      ...(takesKey(route) && body !== undefined ? { idempotency_key: key_schema } : {}),
    } as Members,
    required: [
      ...ids.map(([name]) => name as string),
      ...(query.required ?? []),
      ...((body?.['required'] ?? []) as string[]),
    ],
  };
};

const makeTool = (def: ToolDef, routes: readonly Route[]): Tool => {
  const { name, title, description, names = {}, own = {}, rows, picks, operations } = def;
  const { choose = () => operations[0] } = def;
  const inputs = routes.map((route) => inputOf(route, def));
  const members: Record<string, TSchema> = Object.assign(
    {},
    ...inputs.map(({ ids, query, body }) => ({ ...ids, ...query, ...body })),
    own,
  );
  if (rows !== undefined)
    members['limit'] = { ...(members['limit'] as TSchema), default: usual_limit };
  const [first, ...others] = inputs as [(typeof inputs)[number], ...typeof inputs];
  const required = first.required.filter((one) =>
    others.every((other) => other.required.includes(one)),
  );
  const indexOf = (args: Arguments): number => operations.indexOf(choose(args));
  /** One check per operation. The route checks the body itself. */
  const checks = inputs.map(
    ({ query }): Check => compileCheck(Type.Object({ ...query, ...own }), 'arguments'),
  );
  const problemOf = (args: Arguments): string | null => {
    const { ids } = inputs[indexOf(args)] as (typeof inputs)[number];
    const missing = Object.keys(ids).find(
      (one) => typeof args[one] !== 'string' || args[one] === '',
    );
    if (missing !== undefined) return `${name} needs ${missing}, an id (a UUID).`;
    return def.problemOf?.(args) ?? null;
  };
  /** `fields` names members of `picked`. */
  const answer = routes[0]?.returns[200] as TSchema;
  const picked = picks === 'row' ? answer['properties'][rows as string].items : answer;
  const explainFields = ({ fields = [] }: Arguments): readonly FaultField[] | null => {
    const wrong = (fields as readonly string[]).flatMap((field, n) => {
      const message = explainField(picked, field);
      return message === null ? [] : [{ path: `arguments.fields.${n}`, message }];
    });
    return wrong.length === 0 ? null : wrong;
  };
  return {
    shown: {
      name,
      title,
      description,
      inputSchema: inputSchema(members, required),
      annotations: {
        readOnlyHint: routes.every(({ method }) => method === 'GET'),
        openWorldHint: true,
      },
    },
    read(given) {
      const usual = rows === undefined ? {} : { limit: usual_limit };
      const args = { ...usual, ...readArguments(members, given) };
      const unknown = refuseUnknown(name, members, args);
      if (unknown !== null) return unknown;
      const message = problemOf(args);
      if (message !== null) return refuse(common_faults.INVALID_REQUEST, { message });
      const fields = checks[indexOf(args)]?.(args) ?? explainFields(args);
      if (fields === null) return args;
      const said = sayFirst('call', fields);
      return refuse(common_faults.INVALID_REQUEST, { message: said, fields });
    },
    callOf(args) {
      const at = indexOf(args);
      const { method, path, body } = routes[at] as Route;
      const search = new URLSearchParams();
      for (const member of Object.keys(inputs[at]?.query ?? {})) {
        const value = args[member];
        if (value !== undefined) search.set(member, queryText(value));
      }
      const filled = path.replace(/\{(\w+)\}/g, (_, of_path: string) =>
        encodeURIComponent(String(args[names[of_path] ?? of_path])),
      );
      const sent = Object.entries(args).filter(([member]) =>
        Object.hasOwn(membersOf(body), member),
      );
      const { idempotency_key } = args;
      return {
        method,
        path: filled,
        query: search.toString(),
        ...(body === undefined ? {} : { body: Object.fromEntries(sent) }),
        headers:
          idempotency_key === undefined ? {} : { 'idempotency-key': queryText(idempotency_key) },
      };
    },
    shapeOf: ({ fields, full }) => ({
      rows: rows ?? null,
      picks: picks ?? 'answer',
      fields: (fields as readonly string[] | undefined) ?? null,
      is_full: full === true,
      whole: `${picks === undefined ? 'get_question with ' : ''}full: true returns all`,
    }),
  };
};

/** Makes the tools from the routes of the API, keyed by name. */
export const makeTools = (routes: readonly Route[]): ReadonlyMap<string, Tool> =>
  new Map(
    defs.map((def) => [
      def.name,
      makeTool(
        def,
        def.operations.map((id) => routes.find((route) => route.id === id) as Route),
      ),
    ]),
  );
