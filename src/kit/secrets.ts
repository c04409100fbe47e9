/**
 * Credentials in places that are not for them. A client may put its key into a path or into
 * `X-Request-Id`; nothing that is written down may repeat it.
 */

/** API keys (`sk_`) and session tokens (`hs_`), also with the underscore percent-encoded. */
const credential = /(?:sk|hs)(?:_|%5f)[\w-]{20,}/i;
const credentials = new RegExp(credential, 'gi');

export const hasCredential = (text: string): boolean => credential.test(text);

export const hideCredentials = (text: string): string => text.replace(credentials, '[redacted]');
