import type { KeptRound } from './kept-results.ts';
import type { Shape } from './shapes.ts';

export const sideNames = [
  'capstan',
  'queued',
  'beside',
  'beside queued',
  'bare',
  'floor',
  'restate',
  'dbos',
] as const;
export type SideName = (typeof sideNames)[number];

/** Each side of this checkout, and the same of another one. */
export const counterparts = [
  ['capstan', 'beside'],
  ['queued', 'beside queued'],
] as const satisfies readonly (readonly [SideName, SideName])[];

/** What Capstan alone has. */
export interface CapstanWork {
  /** Makes the first runs, and waits until their evidence about the capabilities' speed is known. */
  learn(): Promise<void>;
  /** Makes one run and follows its events. @returns the delay of each in milliseconds */
  follow(): Promise<readonly number[]>;
  /** How the next run would carry out its steps, and why. */
  tellDispatch(): Promise<string>;
  /** Null where a step may not keep its results. */
  readonly measureKept: (() => Promise<KeptRound>) | null;
}

/** One of those that are compared. Both ways to run it throw unless the result is right. */
export interface Side {
  readonly name: SideName;
  /** Whose processor time it is billed; what the others use meanwhile, idle, is not. */
  readonly parts: readonly string[];
  /** Makes one run and waits for it, with as little else as possible. */
  run(shape: Shape, text: string): Promise<void>;
  /** The same. @returns milliseconds from the request to the recorded end */
  time(shape: Shape, text: string): Promise<number>;
  /** Events in the Temporal history of the last run; null where there is none. */
  countHistory(): Promise<number | null>;
  readonly capstan: CapstanWork | null;
}

export type BySide<Value> = Readonly<Partial<Record<SideName, Value>>>;
