import { printable, writeLine } from './printable.js';

/**
 * Progress of one long task: a line that is drawn again in place on a terminal, and a line now and
 * then anywhere else (a log, a pipe).
 */
export interface Bar {
  /** `share` from 0 to 1; `note` stands behind it. */
  update(share: number, note: string): void;
  /** Takes the bar away, so that other lines can be written; the next update draws it again. */
  clear(): void;
}

export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const width = 28;
const frame_ms = 80;

export const drawBar = (share: number): string => {
  const full = Math.round(Math.min(1, Math.max(0, share)) * width);
  const percent = String(Math.floor(share * 100)).padStart(3);
  return `[${'█'.repeat(full)}${'░'.repeat(width - full)}] ${percent} %`;
};

const makeLiveBar = (screen: Screen): Bar => {
  let drawn_ms = 0;
  let shown = false;
  return {
    update(share, note) {
      const now = performance.now();
      if (share < 1 && now - drawn_ms < frame_ms) return;
      drawn_ms = now;
      shown = true;
      const line = printable(`${drawBar(share)}  ${note}`);
      screen.write(`\r\x1b[2K${line.slice(0, (screen.columns ?? 100) - 1)}`);
    },
    clear() {
      if (shown) screen.write('\r\x1b[2K');
      shown = false;
    },
  };
};

/** A line for each tenth of the way. */
const makePlainBar = (screen: Screen): Bar => {
  let told = -1;
  return {
    update(share, note) {
      const tenth = Math.floor(share * 10);
      if (tenth <= told) return;
      told = tenth;
      writeLine(screen, `${String(Math.floor(share * 100)).padStart(3)} %  ${note}`);
    },
    clear: () => undefined,
  };
};

export const makeBar = (screen: Screen): Bar =>
  screen.isTTY === true ? makeLiveBar(screen) : makePlainBar(screen);
