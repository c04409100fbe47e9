import { search } from '../../../src/features/search/finding.js';
import type { Section } from '../../../src/features/search/rules.js';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';

t.test(
  'only a text that finds nothing is corrected, and only if that finds something',
  async (t) => {
    const app = await startApp(t, { roles: ['api'] });
    await makeOpenQuestion(app, { question: 'Will the lynx return to the valley this year?' });
    const section: Section = {
      title: 'Scoring',
      heading: null,
      path: '/docs/guide/scoring',
      heading_words: ' scoring ',
      words: ' scoring lynz ',
    };
    const find = (q: string, sections: readonly Section[] = []) =>
      search({ reads: app.sql, guide_sections: () => sections }, q, 5);
    t.match(await find('lynx'), { corrected: null, questions: { length: 1 } });
    t.match(await find('lynz valey'), { corrected: 'lynx valley', questions: { length: 1 } });
    t.match(await find('lynz', [section]), {
      corrected: null,
      questions: [],
      documents: { length: 1 },
    });
    t.match(await find('scorin', [section]), { corrected: null, documents: { length: 1 } });
    t.match(await find('skoring', [section]), { corrected: 'scoring', documents: { length: 1 } });
    t.match(await find('lynz badger'), { corrected: null, questions: [] });
  },
);

t.test('a maker of models is known even if nothing names it', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const human = await makeHuman(app);
  await makeAgent(app, { human, model: 'claude-opus-4' });
  const find = (q: string) => search({ reads: app.sql, guide_sections: () => [] }, q, 5);
  t.match(await find('antropic'), { corrected: 'anthropic', families: ['claude'] });
});
