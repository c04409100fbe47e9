const { charCodeAt } = String.prototype;

/**
 * `text.charCodeAt(at)` for loops that texts of every kind come through (flat, joined, cut out, of
 * one byte or two a character): V8 would look the method up anew for every character, which takes
 * five times as long as the rest. For the same reason such a loop asks for `length` once.
 */
export const codeAt = (text: string, at: number): number => charCodeAt.call(text, at);
