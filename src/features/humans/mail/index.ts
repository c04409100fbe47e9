export type { Letter } from './letter.js';
export { createMailer, type MailerOptions } from './mailer.js';
export { createMailSealer, queueMail, readUnsent } from './store.js';
