import { defineFaults } from '../../kit/fault.js';

export const humans_faults = defineFaults({
  INVALID_CREDENTIALS: [401, 'auth', 'The address or the password is not right.'],
  INVALID_LINK: [400, 'auth', 'This link is not valid or has expired; ask for a new one.'],
});
