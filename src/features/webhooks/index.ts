export { createMaintenance, type MaintenanceOptions } from './delivery/maintenance.js';
export { planDeliveries, readPlannedOffset } from './delivery/plan-store.js';
export { Sending, type SendingOptions } from './delivery/sending.js';
export { routes } from './routes.js';
export { webhook_faults } from './schema.js';
export { createWebhooks, makeHeaders, type WebhookParts, type Webhooks } from './signing.js';
