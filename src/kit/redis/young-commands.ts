import { Command } from 'ioredis';

/**
 * V8 makes a function among the old objects when it is written straight into a property, as in
 * `this.reject = (error) => …`: it takes it for a method that stays. ioredis does so for every
 * command, and until all old objects are looked at again, what that function can reach is kept: the
 * command with all it sent, and its reply. Under the load of `bench -- predict` this was most of
 * what grew old. Here the same is done by way of a variable, which is all that it takes.
 */

interface Opened {
  readonly name: string;
  readonly callback: unknown;
  readonly errorStack: unknown;
  args: unknown[];
  transformed: boolean;
  isResolved: boolean;
  isSettled: boolean;
  promise: Promise<unknown>;
  resolve: (reply: unknown) => unknown;
  reject: (error: Error) => void;
  initPromise(): void;
  stringifyArguments(): void;
  _clearTimers(): void;
  _convertValue(resolve: (reply: unknown) => void): (reply: unknown) => unknown;
}

type Transform = (args: unknown[]) => unknown[];

interface OpenedClass {
  readonly prototype: Opened;
  readonly _transformer: { readonly argument: Readonly<Record<string, Transform | undefined>> };
}

/** Commands of this process die young from now on; does nothing where ioredis has changed. */
export const keepCommandsYoung = (): void => {
  const { prototype, _transformer } = Command as unknown as OpenedClass;
  const { initPromise } = prototype;
  if (!String(initPromise).includes('this.reject = (err) =>')) return;
  prototype.initPromise = function (this: Opened): void {
    if (this.callback !== undefined || this.errorStack !== undefined) {
      initPromise.call(this);
      return;
    }
    this.isResolved = false;
    this.isSettled = false;
    this.promise = new Promise((resolve, reject) => {
      if (!this.transformed) {
        this.transformed = true;
        const transform = _transformer.argument[this.name];
        if (transform !== undefined) this.args = transform(this.args);
        this.stringifyArguments();
      }
      this.resolve = this._convertValue(resolve);
      const refuse = (error: Error): void => {
        this._clearTimers();
        this.isSettled = true;
        reject(error);
      };
      this.reject = refuse;
    });
  };
};
