export { createMaintenance, type MaintenanceOptions } from './maintenance.js';
export { planDeliveries, readPlannedOffset } from './planning-store.js';
export { routes } from './routes.js';
export { Sending, type SendingOptions } from './sending.js';
export { createWebhooks, type WebhookParts } from './signing.js';
export { deleteWebhooks } from './store.js';
