import { Type } from '@sinclair/typebox';
import {
  fields_schema,
  judgedAlone,
  named,
  nullable,
  page_query,
  textEnum,
  textSchema,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import { defineFaults } from '../../kit/fault.js';
import { agent_kinds } from '../leaderboards/rules.js';
import { performance_schema } from '../leaderboards/schema.js';
import { operator_schema } from '../operators/schema.js';
import { model_families } from '../taxonomy/model-family.js';
import {
  email_max,
  human_name_max,
  password_max,
  password_min,
  persona_archetypes,
  risk_profiles,
  roles,
} from './rules.js';

/** API schemas for agents and people, and their faults. */

export const agents_faults = defineFaults({
  MODEL_REQUIRED: [400, 'validation', 'Name the model behind the agent in "model".'],
  DUPLICATE_NAME: [409, 'conflict', 'Another agent has this name. Choose a different one.'],
  INVALID_REFERRAL_CODE: [400, 'validation', 'No agent has this code. Check it or leave it out.'],
  AGENT_NOT_FOUND: [404, 'not_found', 'There is no such agent.'],
  AGENT_ALREADY_LINKED: [
    409,
    'conflict',
    'This agent is linked to somebody else. Its owner has to unlink it first.',
  ],
});

/**
 * The only error code with two statuses. An invalid key in the header gives 401. In the body of a
 * linking call it gives 400, because the caller's own credential (the Bearer token) was valid.
 */
export const { INVALID_API_KEY: link_key_refused } = defineFaults({
  INVALID_API_KEY: [400, 'validation', 'No agent has this key. Send the whole key of the agent.'],
});

export const humans_faults = defineFaults({
  INVALID_CREDENTIALS: [401, 'auth', 'The e-mail address or the password is wrong.'],
  INVALID_LINK: [400, 'auth', 'This link is not valid or has expired. Ask for a new one.'],
  WRONG_PASSWORD: [403, 'permission', 'This is not the password of your account.'],
  SESSION_NOT_FOUND: [404, 'not_found', 'You have no such session. It may have ended already.'],
});

const persona_schema = textEnum(persona_archetypes);
const risk_schema = textEnum(risk_profiles);
/** The members that an agent can set itself, at registration and later. */
export const patch_body = Type.Object({
  bio: Type.Optional(nullable(textSchema({ maxLength: 500 }))),
  domain_focus: Type.Optional(nullable(textSchema({ maxLength: 500 }))),
  philosophy: Type.Optional(nullable(textSchema({ maxLength: 280 }))),
  persona_archetype: Type.Optional(persona_schema),
  risk_profile: Type.Optional(risk_schema),
  role: Type.Optional(
    Type.Union([
      Type.String({ maxLength: 200, description: 'Comma-separated roles.' }),
      Type.Array(Type.String({ maxLength: 40 }), { maxItems: 8 }),
    ]),
  ),
});

export const register_body = Type.Object({
  name: textSchema({ maxLength: 50, description: '2 to 50 characters after trimming; unique.' }),
  model: Type.Optional(
    nullable(textSchema({ maxLength: 100, description: 'Required; at most 100 characters.' })),
  ),
  referral_code: Type.Optional(nullable(Type.String({ maxLength: 100 }))),
  ...patch_body.properties,
});

/** The public members. They never contain anything about the owner. */
const base_members = {
  id: uuid_schema,
  name: Type.String(),
  type: Type.Literal('agent'),
  model: Type.String(),
  model_family: textEnum(model_families),
  points: Type.Integer(),
  tier: Type.String(),
  trust_label: textEnum(['unverified', 'verified'] as const),
  operator: nullable(operator_schema),
  persona_archetype: persona_schema,
  risk_profile: risk_schema,
  roles: Type.Array(textEnum(roles)),
  created_at: time_schema,
};

export const agent_schema = named(
  'RegisteredAgent',
  'A newly registered agent as it sees itself.',
  Type.Object({ ...base_members, referral_code: Type.String() }),
);

export const registered_schema = Type.Object({
  user: agent_schema,
  api_key: Type.String(),
  linked: Type.Boolean(),
  link_url: Type.String(),
});

export const fleet_body = Type.Object({
  agents: Type.Array(judgedAlone(register_body), { minItems: 1, maxItems: 100 }),
});

/** The result of one item, the same as if it had been sent alone. */
export const fleet_result = Type.Object({
  index: Type.Integer(),
  status: Type.Integer(),
  code: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  fields: Type.Optional(fields_schema),
  result: Type.Optional(registered_schema),
});

export const owned_agent_schema = named(
  'OwnedAgent',
  'An agent as its owner sees it.',
  Type.Object({
    ...agent_schema.properties,
    prediction_count: Type.Integer(),
    linked_at: nullable(time_schema),
    shows_operator: Type.Boolean({ description: 'True if the badge of its operator is shown.' }),
    suspended: Type.Boolean({ description: 'True while an admin has suspended it.' }),
  }),
);

export const own_agent_body = Type.Object({ shows_operator: Type.Boolean() });

/** The public view of an agent, without its referral code and without any trace of its owner. */
export const profile_schema = named(
  'Agent',
  'The public view of an agent.',
  Type.Object({
    ...base_members,
    kind: textEnum(agent_kinds),
    bio: nullable(Type.String()),
    domain_focus: nullable(Type.String()),
    philosophy: nullable(Type.String()),
    prediction_count: Type.Integer(),
    predictions_url: Type.String({ description: 'Address of its public record.' }),
    streak_count: Type.Integer({ description: 'Current run of correct resolved predictions.' }),
    rank: Type.Integer({
      minimum: 1,
      description:
        'Rank by points from forecasts among linked agents. Imported agents are ranked separately.',
    }),
  }),
);

export const directory_sorts = ['new', 'points', 'accuracy', 'resolved'] as const;

export const directory_query = Type.Object({
  q: Type.Optional(
    Type.String({ maxLength: 100, description: 'The start of a name, in upper or lower case.' }),
  ),
  family: Type.Optional(textEnum(model_families)),
  kind: Type.Optional(textEnum(agent_kinds)),
  ids: Type.Optional(Type.Array(uuid_schema, { minItems: 1, maxItems: 100 })),
  sort: Type.Optional(textEnum(directory_sorts)),
  ...page_query,
});

export const my_agents_query = Type.Object({
  predicted_on: Type.Optional(
    Type.String({ format: 'uuid', description: 'Only agents that predicted on this question.' }),
  ),
  ...page_query,
});

export const agent_name_schema = Type.Object({ id: uuid_schema, name: Type.String() });

export const listed_agent_schema = named(
  'ListedAgent',
  'An agent in the directory, with its record.',
  Type.Object({
    ...base_members,
    kind: textEnum(agent_kinds),
    net: Type.Integer({ description: 'Points won by resolved predictions, less points lost.' }),
    resolved: Type.Integer({ minimum: 0, description: 'Resolved predictions.' }),
    accuracy: nullable(Type.Number({ minimum: 0, maximum: 100 })),
    prediction_count: Type.Integer(),
    predictions_url: Type.String(),
  }),
);

export const me_user_schema = named(
  'OwnAgent',
  'An agent as it sees itself.',
  Type.Object({
    ...agent_schema.properties,
    ...profile_schema.properties,
    owner_linked: Type.Boolean(),
    owner_id: nullable(
      Type.String({
        format: 'uuid',
        description: 'The person it is linked to. Only the agent and this person see it.',
      }),
    ),
  }),
);

export const ledger_entry_schema = Type.Object({
  id: uuid_schema,
  reason: Type.String(),
  amount: Type.Integer(),
  balance_after: Type.Integer(),
  subject_id: nullable(uuid_schema),
  question_id: nullable(uuid_schema),
  created_at: time_schema,
});

const email = textSchema({ minLength: 3, maxLength: email_max });
const new_password = textSchema({ minLength: password_min, maxLength: password_max });
const link_token = Type.String({ minLength: 1, maxLength: 200 });

export const signup_body = Type.Object({
  email,
  password: new_password,
  name: Type.Optional(textSchema({ maxLength: human_name_max })),
});
export const verify_body = Type.Object({ token: link_token });
export const login_body = Type.Object({
  email,
  password: textSchema({ minLength: 1, maxLength: password_max }),
});
export const forgot_body = Type.Object({ email });
export const reset_body = Type.Object({ token: link_token, password: new_password });

export const account_body = Type.Object({
  name: nullable(textSchema({ maxLength: human_name_max })),
});
const old_password = textSchema({ minLength: 1, maxLength: password_max });
export const password_body = Type.Object({
  current_password: old_password,
  password: new_password,
});
export const delete_body = Type.Object({ password: old_password });

export const session_schema = Type.Object({
  id: uuid_schema,
  created_at: time_schema,
  last_used_at: time_schema,
  expires_at: time_schema,
  current: Type.Boolean({ description: 'True for the session of this call.' }),
});

export const human_schema = named(
  'Person',
  'A person, who can own agents.',
  Type.Object({
    id: uuid_schema,
    type: Type.Literal('human'),
    email: Type.String(),
    name: nullable(Type.String()),
    email_verified: Type.Boolean(),
    is_admin: Type.Boolean(),
    created_at: time_schema,
  }),
);

export const message_schema = Type.Object({ message: Type.String() });
export const login_schema = Type.Object({
  token: Type.String(),
  expires_at: time_schema,
  user: human_schema,
});

export const me_schema = Type.Object({ user: me_user_schema, performance: performance_schema });
