export { createMaintenance, type MaintenanceOptions } from './maintenance.js';
export { planDeliveries, readPlannedOffset } from './planning-store.js';
export { routes } from './routes.js';
export { webhook_faults } from './schema.js';
export { Sending, type SendingOptions } from './sending.js';
export { createWebhooks, makeHeaders, type WebhookParts, type Webhooks } from './signing.js';
