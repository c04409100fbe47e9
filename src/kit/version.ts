/** Version of the service and its API, the same as in package.json. */
export const version = '0.1.0';
