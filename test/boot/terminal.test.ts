import { green, makeTerminal } from '../../src/boot/terminal.mjs';
import { t } from '../help/tap.js';

const makeScreen = (isTTY: boolean) => {
  let text = '';
  const waiting: (() => void)[] = [];
  return {
    isTTY,
    columns: 40,
    read: () => text,
    /** Resolves at the next write. */
    next: () => new Promise<void>((resolve) => waiting.push(resolve)),
    write(part: string) {
      text += part;
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
};

t.test('without a terminal a step is one plain line with its seconds', async (t) => {
  const screen = makeScreen(false);
  const terminal = makeTerminal(screen, { env: {} });
  t.equal(await terminal.step('Building', async () => 'Built'), true);
  terminal.update('Ignored');
  t.match(screen.read(), /^✓ Built +0\.\d s\n$/);
  t.equal(screen.read().trimEnd().length, 74);
});

t.test('without a terminal a long step says first what it does', async (t) => {
  const screen = makeScreen(false);
  const terminal = makeTerminal(screen, { env: {}, after_ms: 0 });
  await terminal.step('Building', async () => {
    await screen.next();
    return 'Built';
  });
  t.match(screen.read(), /^Building …\n✓ Built +\d+\.\d s\n$/);
});

t.test(
  'on a terminal the current step is redrawn below other lines, and is green at the end',
  async (t) => {
    const screen = makeScreen(true);
    const terminal = makeTerminal(screen, { env: {} });
    await terminal.step('Building', async () => {
      terminal.say('A line.');
      terminal.update(`Compiling ${'x'.repeat(80)}`);
      return 'Built';
    });
    const clear = '\r\x1b[2K';
    const long = `… Compiling ${'x'.repeat(80)}`.slice(0, 39);
    const start = `… Building${clear}A line.\n… Building${clear}${long}${clear}`;
    t.ok(screen.read().startsWith(start), JSON.stringify(screen.read()));
    t.match(screen.read().slice(start.length), /^\x1b\[32m✓\x1b\[39m Built +0\.\d s\n$/);
  },
);

t.test('a step that fails leaves no line', async (t) => {
  const screen = makeScreen(true);
  const terminal = makeTerminal(screen, { env: {} });
  t.equal(await terminal.step('Building', async () => null), false);
  await t.rejects(
    terminal.step('Building', () => Promise.reject(new Error('no'))),
    { message: 'no' },
  );
  t.equal(screen.read(), '… Building\r\x1b[2K'.repeat(2));
});

t.test('NO_COLOR, a dumb terminal and a file get no colours', async (t) => {
  const screen = makeScreen(true);
  t.equal(green('✓', screen, {}), '\x1b[32m✓\x1b[39m');
  t.equal(green('✓', screen, { NO_COLOR: '' }), '\x1b[32m✓\x1b[39m', 'empty means not set');
  t.equal(green('✓', screen, { NO_COLOR: '1' }), '✓');
  t.equal(green('✓', screen, { TERM: 'dumb' }), '✓');
  t.equal(green('✓', makeScreen(false), {}), '✓');
});
