export { createMailer, type OnRefused } from './mailer.js';
export { readOutbox, type ShownMail } from './outbox.js';
export { deleteMailsTo, dropBulkMails, type Mail, queueMail, queueMails } from './store.js';
