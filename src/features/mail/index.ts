export { createMailer } from './mailer.js';
export { readOutbox, type ShownMail } from './outbox.js';
export { deleteMailsTo, type Mail, queueMail } from './store.js';
