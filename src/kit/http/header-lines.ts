/** Headers as uWS writes them behind another one, in one piece: each line after a line break. */

export type Headers = readonly (readonly [name: string, value: string])[];

export const linesOf = (headers: Headers): string => {
  let lines = '';
  for (const [name, value] of headers) lines += `\r\n${name}: ${value}`;
  return lines;
};
