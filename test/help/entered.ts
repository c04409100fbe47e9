import { Session } from 'node:inspector/promises';
import type { Test } from 'tap';
import { startApp } from './app.js';
import { predict } from './own-predictions.js';
import { makeAgent, makeHuman, makeOpenQuestion } from './story.js';

/** The functions of one file of `src` that a request entered. */
export interface EnteredFile {
  readonly file: string;
  readonly functions: readonly string[];
}

const source = /\/dist\/(src\/.*)\.js$/;

/**
 * Places one prediction and tells which files and functions of `src` were entered between the
 * socket and the commit, by the coverage of that one request. The api process does nothing else
 * meanwhile; what it does by the clock may be in it too.
 */
export const enteredByPrediction = async (t: Test): Promise<readonly EnteredFile[]> => {
  const app = await startApp(t, { roles: ['api'], check_answers: false });
  const human = await makeHuman(app);
  const id = await makeOpenQuestion(app);
  // The first ones read what a process reads once.
  for (let n = 0; n < 3; n += 1) await predict(app, await makeAgent(app, { human }), { id });
  const agent = await makeAgent(app, { human });
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await session.post('Profiler.takePreciseCoverage');
    const answer = await predict(app, agent, { id });
    t.equal(answer.status, 201);
    const { result } = await session.post('Profiler.takePreciseCoverage');
    return result
      .flatMap(({ url, functions }) => {
        const file = source.exec(url)?.[1];
        if (file === undefined) return [];
        const entered = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0);
        const names = entered.map(({ functionName }) => functionName || '(anonymous)');
        return names.length === 0 ? [] : [{ file: `${file}.ts`, functions: [...new Set(names)] }];
      })
      .sort((a, b) => a.file.localeCompare(b.file));
  } finally {
    session.disconnect();
  }
};
