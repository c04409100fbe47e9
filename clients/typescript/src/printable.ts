/**
 * What a terminal may be shown of a text that others wrote: control characters (a line break and a
 * tab aside) and those that turn the direction of the text around them are replaced, so that no
 * name or message moves the cursor, changes colours, rings, or reads otherwise than it is.
 */
export const printable = (text: string): string =>
  text.replace(/(?![\t\n])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, '\ufffd');
