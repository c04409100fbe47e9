import { Session } from 'node:inspector/promises';
import { type Test, t } from 'tap';
import { predict } from './features/predictions/own-predictions.js';
import { startApp } from './help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion } from './help/story.js';

/** `npm run walk`: the files and functions that run for one prediction, from socket to commit. */

/** The functions in one file of `src` that ran for a request. */
interface EnteredFile {
  readonly file: string;
  readonly functions: readonly string[];
}

const source = /\/dist\/(src\/.*)\.js$/;

const idle_ms = 2_500;

type Coverage = Awaited<ReturnType<typeof take>>;

/** The functions that ran since the last call, by file. */
const take = async (session: Session) => {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const found = new Map<string, Set<string>>();
  for (const { url, functions } of result) {
    const file = source.exec(url)?.[1];
    if (file === undefined) continue;
    for (const { functionName, ranges } of functions) {
      const [range] = ranges;
      if (range === undefined || range.count === 0) continue;
      const names = found.get(file) ?? new Set();
      found.set(file, names.add(`${functionName || '(anonymous)'} ${range.startOffset}`));
    }
  }
  return found;
};

const without = (all: Coverage, other: Coverage): EnteredFile[] =>
  [...all].flatMap(([file, names]) => {
    const left = [...names].filter((name) => other.get(file)?.has(name) !== true);
    const functions = [...new Set(left.map((name) => name.slice(0, name.lastIndexOf(' '))))];
    return functions.length === 0 ? [] : [{ file: `${file}.ts`, functions }];
  });

/**
 * Places one prediction and returns the functions of `src` that ran for it, by file. They come from
 * the coverage of that one request, during which the api process does nothing else. Functions that
 * timers run without a request are left out.
 */
const enteredByPrediction = async (t: Test): Promise<readonly EnteredFile[]> => {
  const app = await startApp(t, { roles: ['api'], check_answers: false });
  const human = await makeHuman(app);
  const id = await makeOpenQuestion(app);
  // The first predictions read data that a process reads only once.
  for (let n = 0; n < 3; n += 1) await predict(app, await makeAgent(app, { human }), { id });
  const agent = await makeAgent(app, { human });
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await session.post('Profiler.takePreciseCoverage');
    await new Promise((resolve) => setTimeout(resolve, idle_ms));
    const idle = await take(session);
    const answer = await predict(app, agent, { id });
    t.equal(answer.status, 201);
    const entered = without(await take(session), idle);
    return entered.sort((one, other) => one.file.localeCompare(other.file));
  } finally {
    session.disconnect();
  }
};

t.test('one prediction', async (t) => {
  const files = await enteredByPrediction(t);
  for (const { file, functions } of files) t.comment(`${file}: ${functions.join(', ')}`);
  const folders = new Set(files.map(({ file }) => file.slice(0, file.lastIndexOf('/'))));
  const functions = files.reduce((sum, { functions }) => sum + functions.length, 0);
  t.comment(`${files.length} files in ${folders.size} folders, ${functions} functions`);
});
