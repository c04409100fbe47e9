/** Requests of the bench `reads`: the same few addresses again and again, as hot reads are. */
export interface ReadRequests {
  readonly paths: readonly string[];
  readonly count: number;
}

export const makeRequests = ({ paths, count }: ReadRequests): readonly Buffer[] => {
  const texts = paths.map((path) =>
    Buffer.from(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n`),
  );
  return Array.from({ length: count }, (_, k) => texts[k % texts.length] as Buffer);
};
