export { type DispatchLimits, dispatch_limits } from './delivery/dispatcher.js';
export { createKeeper, type KeeperOptions } from './delivery/keeper.js';
export { planDeliveries, readPlannedOffset } from './delivery/plan-store.js';
export { Sending, type SendingOptions } from './delivery/sending.js';
export { createWebhooks, type WebhookParts, type Webhooks } from './parts.js';
export { routes } from './routes.js';
export { webhook_faults } from './schema.js';
export { makeHeaders } from './signing.js';
