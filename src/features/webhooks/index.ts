export { createMaintenance, type MaintenanceOptions } from './delivery/maintenance.js';
export { planDeliveries, readPlannedOffset } from './delivery/plan-store.js';
export { Sending, type SendingOptions } from './delivery/sending.js';
export { createWebhooks, type WebhookParts, type Webhooks } from './parts.js';
export { routes } from './routes.js';
export { webhook_faults } from './schema.js';
export { makeHeaders } from './signing.js';
