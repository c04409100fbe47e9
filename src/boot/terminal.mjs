/**
 * Says what a command is doing, with seconds. On a terminal, the current step is one line that
 * changes; elsewhere there are only plain lines. Plain JavaScript without dependencies, because the
 * first start uses it before anything is installed.
 */

const tick_ms = 1_000;
/** Without a terminal, a step is announced only if it takes longer than this. */
const announce_ms = 2_000;
const width = 64;

const seconds = (ms) => `${(ms / 1_000).toFixed(1)} s`;

/** Green on a terminal, unless NO_COLOR is set (no-color.org). */
export const green = (text, { isTTY }, env = process.env) =>
  isTTY === true && env.TERM !== 'dumb' && (env.NO_COLOR ?? '') === ''
    ? `\x1b[32m${text}\x1b[39m`
    : text;

export const makeTerminal = (stream, { env = process.env, after_ms = announce_ms } = {}) => {
  const is_live = stream.isTTY === true && env.TERM !== 'dumb';
  /** The current step. */
  let current = null;
  const clear = () => {
    if (is_live && current !== null) stream.write('\r\x1b[2K');
  };
  const draw = () => {
    if (!is_live || current === null) return;
    const passed = Math.floor((Date.now() - current.started_ms) / 1_000);
    const line = `… ${current.text}${passed === 0 ? '' : `  ${passed} s`}`;
    stream.write(line.slice(0, (stream.columns || 80) - 1));
  };
  const redraw = () => {
    clear();
    draw();
  };
  const say = (line) => {
    clear();
    stream.write(`${line}\n`);
    draw();
  };
  const sayDone = (text, ms) =>
    say(`${green('✓', stream, env)} ${text.padEnd(width)} ${seconds(ms).padStart(7)}`);
  return {
    say,
    /** Changes the text of the current step on a terminal. */
    update(text) {
      if (current === null) return;
      // Cleared first, while there is still a line of this step.
      clear();
      current.text = text;
      draw();
    },
    /**
     * Runs one step and says when it is done. `work` returns the text of the finished step, or null if
     * the step failed. The caller then says why.
     */
    async step(text, work) {
      const started_ms = Date.now();
      current = { text, started_ms };
      draw();
      const timer = is_live
        ? setInterval(redraw, tick_ms)
        : setTimeout(() => stream.write(`${text} …\n`), after_ms);
      timer.unref();
      try {
        const done = await work();
        clear();
        current = null;
        if (done !== null) sayDone(done, Date.now() - started_ms);
        return done !== null;
      } finally {
        clearInterval(timer);
        clear();
        current = null;
      }
    },
  };
};
