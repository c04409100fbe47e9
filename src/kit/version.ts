/** Of the service and of its API; that of package.json. */
export const version = '0.1.0';
