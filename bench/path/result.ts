import { describeMachine } from '../engine/result.ts';
import { type Path, type PathFigures, summarizePaths } from './marks.ts';
import type { PathSide, PathSideName } from './path-side.ts';

export interface PathResult {
  readonly at: string;
  readonly machine: string;
  /** Of each side. */
  readonly runs: number;
  readonly sides: Readonly<Record<PathSideName, PathFigures>>;
  /** How they carry out their steps, and why. */
  readonly dispatched: Readonly<Record<PathSideName, string | null>>;
}

export type Followed = ReadonlyMap<PathSide, readonly Path[]>;

export async function summarize(followed: Followed, runs: number): Promise<PathResult> {
  const sides: Partial<Record<PathSideName, PathFigures>> = {};
  const dispatched: Partial<Record<PathSideName, string | null>> = {};
  for (const [side, paths] of followed) {
    sides[side.name] = summarizePaths(paths);
    dispatched[side.name] = await side.tellDispatch();
  }
  return {
    at: new Date().toISOString(),
    machine: describeMachine(),
    runs,
    sides: sides as PathResult['sides'],
    dispatched: dispatched as PathResult['dispatched'],
  };
}
