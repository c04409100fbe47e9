import { Type } from '@sinclair/typebox';
import { nullable, time_schema, uuid_schema } from '../../http/openapi.js';
import { defineFaults } from '../../kit/fault.js';
import { email_max, password_max, password_min } from './human-rules.js';

/** The wire of human accounts. It appears in answers to the person and nowhere else. */

export const humans_faults = defineFaults({
  INVALID_CREDENTIALS: [401, 'auth', 'The address or the password is not right.'],
  INVALID_LINK: [400, 'auth', 'This link is not valid or has expired; ask for a new one.'],
});

const email = Type.String({ minLength: 3, maxLength: email_max });
const new_password = Type.String({ minLength: password_min, maxLength: password_max });
const link_token = Type.String({ minLength: 1, maxLength: 200 });

export const signup_body = Type.Object({
  email,
  password: new_password,
  name: Type.Optional(Type.String({ maxLength: 200 })),
});
export const verify_body = Type.Object({ token: link_token });
export const login_body = Type.Object({
  email,
  password: Type.String({ minLength: 1, maxLength: password_max }),
});
export const forgot_body = Type.Object({ email });
export const reset_body = Type.Object({ token: link_token, password: new_password });

export const human_schema = Type.Object({
  id: uuid_schema,
  type: Type.Literal('human'),
  email: Type.String(),
  name: nullable(Type.String()),
  email_verified: Type.Boolean(),
  is_admin: Type.Boolean(),
  created_at: time_schema,
});

export const message_schema = Type.Object({ message: Type.String() });
export const login_schema = Type.Object({
  token: Type.String(),
  expires_at: time_schema,
  user: human_schema,
});

export const mail_schema = Type.Object({
  to: Type.String(),
  subject: Type.String(),
  text: Type.String(),
  links: Type.Array(Type.String()),
  created_at: time_schema,
});
