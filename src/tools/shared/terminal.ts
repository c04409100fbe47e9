import { SingleBar } from 'cli-progress';

/** What the commands write to a terminal, a file or a pipe. */

export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/**
 * What a terminal may be shown of a text that others wrote: control characters (a line break and a
 * tab aside) and those that turn the direction of the text around them are replaced, so that no
 * name or message moves the cursor, changes colours, rings, or reads otherwise than it is.
 */
export const printable = (text: string): string =>
  text.replace(/(?![\t\n])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, '\ufffd');

/** Writes one line, or several, that a terminal may be shown. */
export const writeLine = (screen: { write(text: string): unknown }, line: string): void => {
  screen.write(`${printable(line)}\n`);
};

export interface Progress {
  /** Draws the bar; the texts fill holes of its format. */
  update(value: number, total: number, texts: Readonly<Record<string, string>>): void;
  /** Takes the bar off a terminal, so that other lines can be written; `update` draws it again. */
  clear(): void;
  end(): void;
}

/** Where the output is a file or a pipe, a line now and then. */
const plain_ms = 5_000;

/** `format` as cli-progress has it: `{bar}`, `{value}`, `{eta_formatted}` and own holes. */
export const makeProgress = (screen: Screen, format: string): Progress => {
  let bar: SingleBar | null = null;
  const end = (): void => {
    bar?.stop();
    bar = null;
  };
  return {
    update(value, total, texts) {
      const shown = Object.entries(texts).map(([name, text]) => [name, printable(text)] as const);
      if (bar !== null) return bar.update(value, Object.fromEntries(shown));
      bar = new SingleBar({
        ...{ format, stream: screen as NodeJS.WriteStream, noTTYOutput: true },
        ...{ notTTYSchedule: plain_ms, clearOnComplete: true, gracefulExit: false },
        ...{ barCompleteChar: '█', barIncompleteChar: '░', barsize: 28, etaBuffer: 100 },
      });
      bar.start(total, value, Object.fromEntries(shown));
    },
    clear: () => {
      if (screen.isTTY === true) end();
    },
    end,
  };
};
