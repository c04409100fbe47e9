import { Type } from '@sinclair/typebox';
import { time_schema } from '../../http/schemas.js';

export const mail_schema = Type.Object({
  to: Type.String(),
  subject: Type.String(),
  text: Type.String(),
  links: Type.Array(Type.String()),
  created_at: time_schema,
});
