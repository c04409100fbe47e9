import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Replaces the compiler in the small checkouts of `prepare.test.ts`, whose sources are plain
 * JavaScript. Like the compiler, it writes an output and a map for each source, and recompiles only
 * sources that changed since `.tsbuildinfo`. A deleted output therefore stays missing until
 * `.tsbuildinfo` is gone. The stand-in waits while a file named `hold` exists.
 */
const [, , , project, ...flags] = process.argv;
const is_program = path.resolve(project) === process.cwd();

const listSources = (folder) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))
    .map((name) => path.join(folder, name));

const write = (file, text) => {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
};

const compileProgram = () => {
  const state = path.join('dist', '.tsbuildinfo');
  const before = existsSync(state) ? JSON.parse(readFileSync(state, 'utf8')) : {};
  const now = {};
  for (const name of [...listSources('src'), ...listSources('test')]) {
    now[name] = readFileSync(name, 'utf8');
    if (now[name] === before[name]) continue;
    const output = path.join('dist', name.replace(/ts$/, 'js'));
    write(output, now[name]);
    write(`${output}.map`, '{}');
  }
  write(state, JSON.stringify(now));
};

const compileClient = () => {
  const folder = path.dirname(project);
  const ending = flags.includes('--emitDeclarationOnly') ? 'd.ts' : 'js';
  for (const name of listSources(path.join(folder, 'src'))) {
    const output = path.join(folder, 'dist', path.basename(name).replace(/ts$/, ending));
    write(output, readFileSync(name, 'utf8'));
  }
};

while (existsSync('hold')) await delay(5);
if (is_program) compileProgram();
else compileClient();
