import type { Deps } from '../../kit/deps.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { turnQuestions } from './life.js';

/** Closes questions on time and announces closings; any number of these may run. */
export const createQuestionTimer = (deps: Deps, every_ms = 500): Service =>
  makeLoop({
    name: 'question timer',
    log: deps.log,
    every_ms,
    turn: async () => ((await turnQuestions(deps)) >= 200 ? 'again' : 'rest'),
  });
