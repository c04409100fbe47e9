export declare const commands: Readonly<Record<string, readonly [entry: string, about: string]>>;
export declare const checkout_commands: Readonly<Record<string, string | null>>;
export declare const exit_codes: {
  readonly ok: 0;
  readonly failed: 1;
  readonly usage: 2;
  readonly unreachable: 3;
  readonly partial: 4;
};
export declare const nearestNames: (typed: string, names: readonly string[]) => string[];
export declare const sayUnknown: (what: string, typed: string, names: readonly string[]) => string;
