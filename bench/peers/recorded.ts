/** An answer of the service, for a peer to give as well. */
export interface Recorded {
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}
