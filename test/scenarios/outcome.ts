import type { Account } from './account.ts';

/** What a scenario came to. */
export interface Outcome {
  /** How many calls ended how: `succeeded`, or a code. */
  readonly ends: Readonly<Record<string, number>>;
  /** Processes that were killed. */
  readonly kills: number;
  /** The most calls at once on the instance that it is about. */
  readonly most: number;
  readonly account: Account;
}
