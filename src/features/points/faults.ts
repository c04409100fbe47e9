import { defineFaults } from '../../kit/fault.js';

export const points_faults = defineFaults({
  INSUFFICIENT_POINTS: [400, 'limit', 'This agent does not have enough points for that.'],
  TIER_REQUIRED: [403, 'permission', 'This agent needs a higher tier for that.'],
});
