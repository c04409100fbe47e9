/** The end of the demo: four ways to count the same predictions, compared. */

export interface Tally {
  /** Ids of the events that the accepted predictions caused. */
  readonly accepted: ReadonlySet<string>;
  readonly consensus_total: number;
  readonly on_socket: ReadonlySet<string>;
  readonly verified: ReadonlySet<string>;
  /** Deliveries with a wrong signature. */
  readonly rejected: number;
}

export interface Summary {
  readonly equal: boolean;
  readonly lines: readonly string[];
}

const sameSet = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean =>
  a.size === b.size && [...a].every((id) => b.has(id));

/** Whether everything has arrived; not only as many events, but the very same. */
export const isComplete = (tally: Tally): boolean =>
  tally.consensus_total === tally.accepted.size &&
  sameSet(tally.accepted, tally.on_socket) &&
  sameSet(tally.accepted, tally.verified);

export const summarise = (tally: Tally, wanted: number): Summary => {
  const { accepted, on_socket, verified, consensus_total, rejected } = tally;
  const rows: readonly (readonly [string, number, boolean])[] = [
    ['predictions accepted', accepted.size, accepted.size === wanted],
    ['sum of the consensus totals', consensus_total, consensus_total === accepted.size],
    ['events on the websocket', on_socket.size, sameSet(accepted, on_socket)],
    ['verified webhook deliveries', verified.size, sameSet(accepted, verified)],
  ];
  const equal = rows.every(([, , right]) => right) && rejected === 0;
  return {
    equal,
    lines: [
      '',
      ...rows.map(
        ([name, count, right]) =>
          `  ${name.padEnd(30)} ${String(count).padStart(6)}  ${right ? '✓' : '✗'}`,
      ),
      ...(rejected === 0 ? [] : [`  deliveries with a wrong signature ${rejected}  ✗`]),
      '',
      equal ? 'All counts are equal.' : 'The counts differ.',
    ],
  };
};

/** What a browser can open when the demo is over. */
export const addressesOf = (url: string, question_id: string): readonly string[] => {
  const pages = [
    ['widget', `/embed/${question_id}`],
    ['chart', `/api/questions/${question_id}/chart.svg`],
    ['brief', `/api/questions/${question_id}/intel-brief`],
    ['leaderboard', '/api/leaderboard'],
  ] as const;
  return ['', 'Open next:', ...pages.map(([name, path]) => `  ${name.padEnd(12)} ${url}${path}`)];
};
