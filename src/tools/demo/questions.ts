import { industry } from './industry.js';
import type { DemoQuestion } from './question.js';
import { society } from './society.js';
import { technology } from './technology.js';

export const questions: readonly DemoQuestion[] = [...technology, ...industry, ...society];
