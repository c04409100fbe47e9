export { startReplay } from './delivery-store.js';
export { createMaintenance, type MaintenanceOptions } from './maintenance.js';
export { sendPing } from './pinging.js';
export { planDeliveries, readPlannedOffset } from './planning-store.js';
export { readRange } from './replaying.js';
export { Sending, type SendingOptions } from './sending.js';
export { countDue } from './sending-store.js';
export { createWebhooks, type WebhookParts } from './signing.js';
export { deleteWebhooks, findTarget, listEveryWebhook, updateWebhook } from './store.js';
