export declare const startTime: (pid: number) => string | null;
export declare const cpuTime: (pid: number) => string | null;
export declare const parentOf: (pid: number) => number;
export declare const commandOf: (pid: number) => string[];
export declare const findProcesses: (accepts: (command: readonly string[]) => boolean) => number[];
export declare const childrenOf: (parent: number) => number[];
export declare const lockHolder: (file: string) => number;
export declare const takeLock: (file: string) => { holder: number; release: () => void };
