/**
 * What the account pages say where the service refuses. Its own sentences are for programs too:
 * those that name a part of a request are said in other words here.
 */

/** By the path of the first field that is wrong. */
export const field_words: Readonly<Record<string, string>> = {
  'body.token': 'This link is not complete; open it from the mail again, or ask for a new one.',
  'body.email': 'Enter an e-mail address, such as ada@example.org.',
  'body.password': 'Choose a password of 10 to 1,000 characters.',
  'body.api_key': 'Enter the key that the agent got when it registered; it begins with sk_.',
};

/** By the code of the refusal. */
export const code_words: Readonly<Record<string, string>> = {
  INVALID_API_KEY: 'This is not the key of an agent; copy all of it, or register the agent again.',
  INVALID_TOKEN: 'You are not logged in any more; log in again.',
  MISSING_AUTH: 'You are not logged in any more; log in again.',
  HUMANS_ONLY: 'You are not logged in any more; log in again.',
  RATE_LIMITED: 'Too many tries; wait a minute, then try again.',
  INTERNAL: 'Something went wrong on our side; try again.',
};

export const other_words = 'That did not work; load the page again and try once more.';

/** Sentences that speak of a request. No backslash: it becomes part of a script. */
export const for_programs =
  'body|query|params|header|/api/|X-[A-Z]|[A-Z]+-Key|Bearer|JSON|json|request|route|method';
