export type { Letter } from './letter.js';
export { createMailer, type MailerOptions } from './mailer.js';
export { type MailRow, queueMail, readUnsent } from './store.js';
