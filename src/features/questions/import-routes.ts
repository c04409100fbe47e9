import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { isFault, refusedItem, unreadableItem } from '../../kit/fault.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { compileCheck } from '../../kit/http/validation.js';
import { adminName } from '../audit/index.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { createQuestion } from './actions.js';
import { type ImportResult, import_result, type QuestionDraft, question_draft } from './schema.js';

const route = routeFor<Deps & TaxonomyParts>();

export const importQuestions = route({
  id: 'importQuestions',
  method: 'POST',
  path: '/api/admin/questions/import',
  summary: 'Create up to 100 questions; each item has its own result, known sources are kept',
  tag: 'questions',
  auth: 'admin',
  body: Type.Object({ items: Type.Array(Type.Unknown(), { minItems: 1, maxItems: 100 }) }),
  body_limit: 4 * 1024 * 1024,
  returns: { 200: Type.Object({ results: Type.Array(import_result) }) },
  handle: async ({ body, caller }, deps) => {
    const results: ImportResult[] = [];
    const admin = adminName(caller);
    for (const [index, item] of body.items.entries()) {
      results.push(await importOne(deps, { index, item, admin }));
    }
    return reply(200, { results });
  },
});

const checkDraft = compileCheck(question_draft, 'item');

const importOne = async (
  deps: Deps & TaxonomyParts,
  { index, item, admin }: { index: number; item: unknown; admin: string },
): Promise<ImportResult> => {
  const wrong = checkDraft(item);
  if (wrong !== null) return { index, status: 'refused', ...refusedItem(unreadableItem(wrong)) };
  const made = await createQuestion(deps, item as QuestionDraft, {
    admin,
    act: 'question.import',
  });
  return isFault(made)
    ? { index, status: 'refused', ...refusedItem(made) }
    : { index, status: made.created ? 'created' : 'exists', question_id: made.row.id };
};
