interface Stream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface Terminal {
  say(line: string): void;
  update(text: string): void;
  done(text: string, ms: number): void;
  step(text: string, work: () => Promise<string | null>): Promise<boolean>;
}

export function seconds(ms: number): string;
export function green(text: string, stream: Stream, env?: NodeJS.ProcessEnv): string;
export function makeTerminal(
  stream: Stream,
  options?: { readonly env?: NodeJS.ProcessEnv; readonly after_ms?: number },
): Terminal;
