import type { Path } from './marks.ts';

export const pathSideNames = ['unset', 'queued', 'bare'] as const;
export type PathSideName = (typeof pathSideNames)[number];

/** A side whose way is followed. */
export interface PathSide {
  readonly name: PathSideName;
  /** Makes one run of three steps. @throws Error unless it did what it should */
  follow(): Promise<Path>;
  /** Waits until the evidence of earlier runs about the capability's speed is known. */
  awaitKnown(): Promise<void>;
  /** How the next run would carry out its steps, and why; null where there is no choice. */
  tellDispatch(): Promise<string | null>;
}
