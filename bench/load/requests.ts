import { readFileSync } from 'node:fs';
import { makeComment, makeConfidence, makeReasoning } from './predict-texts.js';
import { makeFrame } from './socket-connection.js';

/** The bytes of the requests of one round, prepared before its clock starts. */

/** Each request has an agent and a subject. No pair of them occurs twice. */
export interface PairOptions {
  /** A prediction over HTTP, websocket or MCP, its revision, a comment, or an upvote. */
  readonly kind: 'predict' | 'call' | 'mcp' | 'revise' | 'comment' | 'vote';
  /** JSON file with the agents' keys. Only the first `agents` keys are used. */
  readonly keys_file: string;
  readonly agents: number;
  /** Questions to predict or comment on, seeded predictions to revise, or comments to vote on. */
  readonly subjects: readonly string[];
  readonly count: number;
  /** Number of the first text, so that no text occurs twice in a run. */
  readonly first_text: number;
  /** Sends an Idempotency-Key with each prediction or comment. */
  readonly idempotent?: boolean;
}

export interface ReadOptions {
  readonly kind: 'read';
  /** A few URLs that are read repeatedly, like hot reads. */
  readonly paths: readonly string[];
  readonly count: number;
}

export const readKeys = ({ keys_file, agents }: PairOptions): readonly string[] =>
  (JSON.parse(readFileSync(keys_file, 'utf8')) as string[]).slice(0, agents);

export const predictPath = (question_id: string): string => `/api/questions/${question_id}/predict`;

export const predictBody = (text: number) => ({
  prediction: text % 3 !== 0,
  confidence: makeConfidence(text),
  reasoning: makeReasoning(text),
});

const send = (place: string, key: string, content: object, more = ''): Buffer => {
  const body = JSON.stringify(content);
  return Buffer.from(
    `${place} HTTP/1.1\r\nHost: 127.0.0.1\r\n` +
      `X-API-Key: ${key}\r\nContent-Type: application/json\r\n${more}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
};

interface Pair {
  readonly subject: string;
  readonly key: string;
  /** `text`: number of the text. `nth`: number of the request in its round. */
  readonly text: number;
  readonly nth: number;
  /** Additional headers. */
  readonly more: string;
}

export const mcp_revision = '2026-07-28';
const mcp_headers =
  `MCP-Protocol-Version: ${mcp_revision}\r\nMcp-Method: tools/call\r\nMcp-Name: predict\r\n` +
  'Accept: application/json, text/event-stream\r\n';
export const mcp_meta = {
  'io.modelcontextprotocol/protocolVersion': mcp_revision,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

const makePair: Record<PairOptions['kind'], (pair: Pair) => Buffer> = {
  predict: ({ subject, key, text, more }) =>
    send(`POST ${predictPath(subject)}`, key, predictBody(text), more),
  call: ({ subject, text, nth }) => {
    const route = `POST ${predictPath(subject)}`;
    return makeFrame(JSON.stringify({ op: 'call', id: nth, route, body: predictBody(text) }));
  },
  mcp: ({ subject, key, text, nth }) => {
    const args = { question_id: subject, ...predictBody(text) };
    const params = { name: 'predict', arguments: args, _meta: mcp_meta };
    const message = { jsonrpc: '2.0', id: nth, method: 'tools/call', params };
    return send('POST /mcp', key, message, mcp_headers);
  },
  revise: ({ subject, key, text }) =>
    send(`PATCH /api/predictions/${subject}`, key, {
      // Seeded forecasts have no decimals, so each revision, which has some, changes the value.
      probability: Math.floor(makeConfidence(text) / 2) + 0.37,
      reason: makeComment(text),
    }),
  comment: ({ subject, key, text, more }) =>
    send(`POST /api/questions/${subject}/comments`, key, { content: makeComment(text) }, more),
  vote: ({ subject, key }) => send(`POST /api/comments/${subject}/upvote`, key, {}),
};

export const makeRequests = (options: PairOptions | ReadOptions): readonly Buffer[] => {
  if (options.kind === 'read') {
    const texts = options.paths.map((path) =>
      Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n`),
    );
    return Array.from({ length: options.count }, (_, k) => texts[k % texts.length]!);
  }
  const { subjects, count, first_text, kind, idempotent = false } = options;
  const keys = readKeys(options);
  if (count > keys.length * subjects.length) throw new Error('More requests than pairs.');
  return Array.from({ length: count }, (_, nth) => {
    // Continues after the previous round, so that rounds on the same subjects share no pair.
    const text = first_text + nth;
    const subject = subjects[(text + Math.floor(text / keys.length)) % subjects.length]!;
    const agent = kind === 'revise' ? Number.parseInt(subject.slice(-12), 16) : text;
    const more = idempotent ? `Idempotency-Key: bench-${text}\r\n` : '';
    return makePair[kind]({ subject, key: keys[agent % keys.length]!, text, nth, more });
  });
};
