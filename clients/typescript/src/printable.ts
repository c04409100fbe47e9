/**
 * Makes texts that others wrote safe for a terminal. Replaces control characters (except line
 * breaks and tabs) and characters that change the text direction. No name or message can then move
 * the cursor, change colours, ring the bell, or look different from its content.
 */
export const printable = (text: string): string =>
  text.replace(/(?![\t\n])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, '\ufffd');
