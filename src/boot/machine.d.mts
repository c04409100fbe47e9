interface Machine {
  readonly platform: string;
  readonly node: string;
  readonly glibc: string | undefined;
  readonly descriptors: number;
}
export declare const readMachine: () => Machine;
export declare const engineProblem: (machine: Machine) => string | null;
export declare const descriptorProblem: (machine: Pick<Machine, 'descriptors'>) => string | null;
export declare const publicUrlProblem: (url: string) => string | null;
export declare const clusterProblem: (cluster: string, version: string) => string | null;
export declare const startProblem: (
  env: NodeJS.ProcessEnv,
  embedded_postgres: string,
  machine?: Machine,
) => string | null;
