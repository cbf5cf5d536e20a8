import type { Shape } from './shapes.ts';

/** One of the two that are compared. */
export interface Side {
  readonly name: SideName;
  /** Makes one run and waits for it, with as little else as possible. */
  run(shape: Shape): Promise<void>;
  /** The same. @returns milliseconds from the request to the recorded end */
  time(shape: Shape): Promise<number>;
  /** Events in the Temporal history of the last run. */
  countHistory(): Promise<number>;
}

export const sideNames = ['capstan', 'bare'] as const;
export type SideName = (typeof sideNames)[number];
