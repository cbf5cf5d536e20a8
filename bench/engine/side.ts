import type { Shape } from './shapes.ts';

export const sideNames = ['capstan', 'inline', 'beside', 'beside inline', 'bare', 'restate', 'dbos'] as const;
export type SideName = (typeof sideNames)[number];

/** Each side of this checkout, and the same of another one. */
export const counterparts = [
  ['capstan', 'beside'],
  ['inline', 'beside inline'],
] as const satisfies readonly (readonly [SideName, SideName])[];

/** One of those that are compared. Both ways to run it throw unless the result is right. */
export interface Side {
  readonly name: SideName;
  /** Whose processor time it is billed; what the others use meanwhile, idle, is not. */
  readonly parts: readonly string[];
  takes(shape: Shape): boolean;
  /** Makes one run and waits for it, with as little else as possible. */
  run(shape: Shape, text: string): Promise<void>;
  /** The same. @returns milliseconds from the request to the recorded end */
  time(shape: Shape, text: string): Promise<number>;
  /** Events in the Temporal history of the last run; null where there is none. */
  countHistory(): Promise<number | null>;
  /** Makes one run and follows its events. @returns the delay of each in milliseconds; null where there is no stream */
  readonly follow: (() => Promise<readonly number[]>) | null;
}

export type BySide<Value> = Readonly<Partial<Record<SideName, Value>>>;
