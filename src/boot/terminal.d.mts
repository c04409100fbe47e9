interface Stream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface Terminal {
  say(line: string): void;
  update(text: string): void;
  step(text: string, work: () => Promise<string | null>): Promise<boolean>;
}

export function green(text: string, stream: Stream, env?: NodeJS.ProcessEnv): string;
export function makeTerminal(
  stream: Stream,
  options?: { readonly env?: NodeJS.ProcessEnv; readonly after_ms?: number },
): Terminal;
