import net from 'node:net';

/** Speaks to a server byte by byte, to send requests that no HTTP client would send. */

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

const readHead = (text: string): Omit<RawAnswer, 'text'> => {
  const [first = '', ...lines] = text.split('\r\n');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const at = line.indexOf(':');
    const name = line.slice(0, at).toLowerCase();
    const value = line.slice(at + 1).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1] ?? 0), headers };
};

/** Cuts the first answer off the bytes. Returns null if it is not complete yet. */
const cutAnswer = (bytes: Buffer, head: boolean): { answer: RawAnswer; length: number } | null => {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const { status, headers } = readHead(bytes.toString('latin1', 0, end));
  const bodiless = head || status === 204 || status === 304 || status < 200;
  const size = bodiless ? 0 : Number(headers['content-length'] ?? 0);
  if (bytes.length < end + 4 + size) return null;
  const text = bytes.toString('utf8', end + 4, end + 4 + size);
  return { answer: { status, headers, text }, length: end + 4 + size };
};

export type RawConnection = ReturnType<typeof openRaw>;

export const openRaw = (port: number) => {
  let bytes = Buffer.alloc(0);
  let ended = false;
  let wake: () => void = () => undefined;
  const socket = net.connect(port, '127.0.0.1');
  socket.on('data', (chunk) => {
    bytes = Buffer.concat([bytes, chunk]);
    wake();
  });
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => {
      ended = true;
      wake();
      resolve();
    });
  });
  return {
    write(data: string | Uint8Array) {
      socket.write(data);
    },
    /**
     * The next complete answer. Null if the connection ends before it. Set `head` for HEAD, whose
     * answers have no body.
     */
    async next({ head = false } = {}): Promise<RawAnswer | null> {
      for (;;) {
        const cut = cutAnswer(bytes, head);
        if (cut !== null) {
          bytes = bytes.subarray(cut.length);
          return cut.answer;
        }
        if (ended) return null;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    /** Everything received that `next` has not consumed. */
    get rest() {
      return bytes.toString('latin1');
    },
    closed,
    /** Removes and returns all complete answers. */
    take(): readonly RawAnswer[] {
      const answers: RawAnswer[] = [];
      for (let cut = cutAnswer(bytes, false); cut !== null; cut = cutAnswer(bytes, false)) {
        bytes = bytes.subarray(cut.length);
        answers.push(cut.answer);
      }
      return answers;
    },
    /** Resets the connection without closing it properly. */
    reset() {
      socket.resetAndDestroy();
    },
  };
};

/** One request as text. Each of `headers` is a whole line. */
export const writeRequest = (
  start: string,
  headers: readonly string[] = [],
  body: string | Uint8Array = '',
): Buffer =>
  Buffer.concat([
    Buffer.from(`${[start, 'Host: localhost', ...headers].join('\r\n')}\r\n\r\n`, 'latin1'),
    Buffer.from(body as string),
  ]);

interface Asked {
  /** Whole lines. If none of them is a `Host` header, `localhost` is sent. */
  readonly headers?: readonly string[];
  readonly body?: string;
}

/** The answer to one request on a new connection. */
export const askOnce = async (
  port: number,
  start: string,
  { headers = [], body = '' }: Asked = {},
): Promise<RawAnswer> => {
  const raw = openRaw(port);
  const lines = [
    ...(headers.some((line) => /^host:/i.test(line)) ? [] : ['Host: localhost']),
    ...headers,
    ...(body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]),
  ];
  raw.write(
    Buffer.from(`${[`${start} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n${body}`, 'latin1'),
  );
  const answer = await raw.next({ head: start.startsWith('HEAD ') });
  raw.reset();
  if (answer === null) throw new Error(`no answer to ${start}`);
  return answer;
};
