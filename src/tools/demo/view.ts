import { type Screen, writeLine } from '../shared/terminal.js';

/** What the demo shows while it runs: a picture that is drawn again on a terminal, else lines. */

export interface QuestionView {
  readonly text: string;
  readonly total: number;
  /** The forecast of the crowd for YES, or for the leading option. */
  readonly percent: number;
  /** What it is for: YES, or the leading option. */
  readonly label: string;
  readonly families: number;
}

export interface Picture {
  readonly step: string;
  readonly accepted: number;
  readonly wanted: number;
  readonly on_socket: number;
  readonly verified: number;
  readonly questions: readonly QuestionView[];
}

export interface View {
  /** A finished step, kept on the screen. */
  say(line: string): void;
  draw(picture: Picture): void;
  /** Leaves the last picture where it is; lines follow below it. */
  end(): void;
}

const bar_width = { all: 28, one: 24 } as const;
const text_width = 58;

const shorten = (text: string, width: number): string =>
  text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width);

const bar = (share: number, width: number, rest: string): string => {
  const full = Math.round(share * width);
  return `${'█'.repeat(full)}${rest.repeat(width - full)}`;
};

const questionLine = ({ text, total, percent, label, families }: QuestionView): string =>
  `  ${shorten(text, text_width)} ${bar(percent / 100, bar_width.one, '·')} ${percent.toFixed(0).padStart(3)} % ` +
  `${label}, ${total} by ${families} families`;

export const pictureLines = (picture: Picture): readonly string[] => {
  const share = picture.wanted === 0 ? 0 : picture.accepted / picture.wanted;
  const percent = String(Math.floor(share * 100)).padStart(3);
  return [
    `[${bar(share, bar_width.all, '░')}] ${percent} %  ${picture.step}`,
    `  predictions ${picture.accepted}/${picture.wanted}` +
      `   events on the socket ${picture.on_socket}   deliveries verified ${picture.verified}`,
    ...picture.questions.map(questionLine),
  ];
};

const makeLiveView = (screen: Screen): View => {
  let height = 0;
  const erase = (): void => {
    if (height > 0) screen.write(`\x1b[${height}A\x1b[J`);
    height = 0;
  };
  return {
    say(line) {
      erase();
      writeLine(screen, line);
    },
    draw(picture) {
      const width = (screen.columns ?? 120) - 1;
      const lines = pictureLines(picture).map((line) => line.slice(0, width));
      erase();
      writeLine(screen, lines.join('\n'));
      height = lines.length;
    },
    end() {
      height = 0;
    },
  };
};

const makePlainView = (screen: Screen): View => {
  let told = 0;
  let last: Picture | undefined;
  return {
    say: (line) => {
      writeLine(screen, line);
    },
    draw(picture) {
      last = picture;
      const tenth = picture.wanted === 0 ? 0 : Math.floor((10 * picture.accepted) / picture.wanted);
      if (tenth <= told) return;
      told = tenth;
      screen.write(
        `  predictions ${picture.accepted}/${picture.wanted}, events ${picture.on_socket}, ` +
          `deliveries verified ${picture.verified}\n`,
      );
    },
    end() {
      if (last !== undefined) writeLine(screen, last.questions.map(questionLine).join('\n'));
    },
  };
};

export const makeView = (screen: Screen): View =>
  screen.isTTY === true ? makeLiveView(screen) : makePlainView(screen);
