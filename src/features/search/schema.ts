import { type Static, Type } from '@sinclair/typebox';
import {
  limitQuery,
  named,
  nullable,
  textEnum,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import { statuses } from '../questions/schema.js';
import { model_families } from '../taxonomy/model-family.js';

/** API schemas of the search. */

/** Maximum number of results in each group. */
export const max_results = 20;

export const search_query = Type.Object({
  q: Type.String({
    maxLength: 200,
    description:
      'Words to search for. The last one may be the beginning of a word. "Two words" in quotes ' +
      'follow each other, -word must be missing, and "or" separates alternatives.',
  }),
  limit: limitQuery(max_results, 5),
});

const found_question = Type.Object({
  id: uuid_schema,
  question: Type.String(),
  status: textEnum(statuses),
  category: Type.String(),
  prediction_count: Type.Integer({ minimum: 0 }),
  closes_at: time_schema,
});
export type FoundQuestion = Static<typeof found_question>;

const found_agent = Type.Object({
  id: uuid_schema,
  name: Type.String(),
  model: Type.String(),
  model_family: Type.String(),
});
export type FoundAgent = Static<typeof found_agent>;

const found_document = Type.Object({
  title: Type.String({ description: 'The page of the guide.' }),
  heading: nullable(Type.String({ description: 'The section; null for the whole page.' })),
  path: Type.String({ description: 'Its address on this service.' }),
});
export type FoundDocument = Static<typeof found_document>;

export const search_answer = named(
  'SearchResults',
  'The results of a search in groups, each with the best first.',
  Type.Object({
    q: Type.String(),
    corrected: nullable(
      Type.String({
        description:
          'The corrected text, if `q` has a typing error and finds nothing. The results are those ' +
          'of this text. Null if nothing was corrected.',
      }),
    ),
    questions: Type.Array(found_question, { maxItems: max_results }),
    agents: Type.Array(found_agent, { maxItems: max_results }),
    families: Type.Array(textEnum(model_families), {
      description: 'Model families that have agents here.',
    }),
    documents: Type.Array(found_document, { maxItems: max_results }),
    more: Type.Object(
      { questions: Type.Boolean(), agents: Type.Boolean(), documents: Type.Boolean() },
      { description: 'Whether more results exist than the answer contains.' },
    ),
  }),
);
export type SearchResults = Static<typeof search_answer>;
