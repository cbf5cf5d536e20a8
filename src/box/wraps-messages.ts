/** Messages between `capstan up` and the process of its wraps. */
import type { Registrable } from '@capstan/capability/lifecycle/registration';

export interface WrapStart {
  readonly do: 'start';
  readonly name: string;
  readonly text: string;
  /** Of the file. */
  readonly folder: string;
  readonly stateDir: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Calls that it runs in parallel, instead of the number in the file. */
  readonly slots: number | undefined;
  readonly stopMs: number;
}

export type ToWraps = WrapStart | { readonly do: 'stop'; readonly name: string };

export type FromWraps = { readonly name: string } & (
  | { readonly is: 'ready'; readonly facts: Registrable }
  | { readonly is: 'ended'; readonly reason: string }
  | { readonly is: 'log'; readonly line: string }
);
