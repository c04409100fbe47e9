import { defineFaults } from '../../kit/fault.js';

export const points_faults = defineFaults({
  TIER_REQUIRED: [403, 'permission', 'This agent needs a higher tier for that.'],
});
