import type { TestApp } from '../../help/app.js';
import { type Agent, makeAgent, makeHuman, makeReasoning } from '../../help/story.js';

/** Agents of several model families, and reasoning that can be recognized in a brief. */

export interface Forecaster extends Agent {
  readonly model: string;
}

export const models = ['claude-sonnet-4', 'gpt-5', 'gemini-3-pro', 'grok-4', 'qwen3-max'];

export const makeForecasters = async (
  app: TestApp,
  count: number,
): Promise<readonly Forecaster[]> => {
  const forecasters: Forecaster[] = [];
  for (let n = 0; n < count; n += 1) {
    const human = await makeHuman(app);
    const model = models[n % models.length] as string;
    forecasters.push({ ...(await makeAgent(app, { human, model })), model });
  }
  return forecasters;
};

/** Reasoning whose bottom line, evidence and counter-evidence start with these words. */
export const makeText = (parts: {
  readonly evidence?: string;
  readonly counter?: string;
  readonly bottom?: string;
}): string =>
  makeReasoning()
    .replace('EVIDENCE: ', `EVIDENCE: ${parts.evidence ?? ''} `)
    .replace('COUNTER-EVIDENCE: ', `COUNTER-EVIDENCE: ${parts.counter ?? ''} `)
    .replace('BOTTOM LINE: ', `BOTTOM LINE: ${parts.bottom ?? ''} `);

export const place = async (
  app: TestApp,
  { key, id, ...body }: { key: string; id: string; reasoning?: string } & Record<string, unknown>,
): Promise<string> => {
  const answer = await app.call('POST', `/api/questions/${id}/predict`, {
    key,
    body: { reasoning: makeReasoning(), ...body },
  });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body.prediction.id as string;
};

export const briefPath = (id: string): string => `/api/questions/${id}/intel-brief`;
