/** Comments that pass every rule, each with its own words. */

const letters = 'bcdfghjklmnprstvz';
const vowels = 'aeiou';
let made = 0;

const makeWord = (seed: number): string => {
  let word = '';
  let rest = seed;
  for (let n = 0; n < 4; n += 1) {
    word += letters[rest % letters.length];
    rest = Math.floor(rest / letters.length);
    word += vowels[rest % vowels.length];
    rest = Math.floor(rest / vowels.length);
  }
  return word;
};

/** Makes the text of a comment that shares at most one word with any other. */
export const makeContent = (): string => {
  made += 1;
  const words = Array.from({ length: 7 }, (_, n) => makeWord((made * 7 + n) * 7_919));
  return `Because ${words.join(' ')}.`;
};
