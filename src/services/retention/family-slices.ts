/**
 * Families of runs, cut into what one transaction deletes: several small ones, or a part of a large one. Of that the runs
 * go first that nothing was started by, so that one whose process ends in between is a smaller family (P1).
 */
import { countSteps, type Family } from '../../db/retention/ended-families.ts';
import type { PurgePass } from './purge-pass.ts';

const runsAtOnce = 1_000;
/** Rows of steps; attempts and events are a few times as many. A run with more goes by itself. */
const stepsAtOnce = 5_000;
/** Runs whose steps are counted by one statement. */
const countedAtOnce = 200;

export interface FamilySlice {
  /** What is left of each, which has to be deletable as a whole. */
  readonly families: readonly Family[];
  /** Those of them that go. */
  readonly runIds: readonly string[];
}

/** In a trial, where nothing gets smaller, they stay whole. */
export async function sliceFamilies(
  { db, isTrial }: Pick<PurgePass, 'db' | 'isTrial'>,
  families: readonly Family[],
): Promise<readonly FamilySlice[]> {
  const runIds = families.flatMap(({ run_ids }) => run_ids);
  if (isTrial) return [{ families, runIds }];
  const steps = new Map<string, number>();
  for (let at = 0; at < runIds.length; at += countedAtOnce) {
    const counted = await countSteps(db, runIds.slice(at, at + countedAtOnce), stepsAtOnce);
    for (const [runId, count] of counted) steps.set(runId, count);
  }
  return cut(families, (runId) => steps.get(runId) ?? 0);
}

function cut(families: readonly Family[], stepsOf: (runId: string) => number): readonly FamilySlice[] {
  const slices: { families: Family[]; runIds: string[] }[] = [];
  let runs = runsAtOnce;
  let steps = 0;
  for (const { root, run_ids } of families) {
    for (const [at, runId] of run_ids.entries()) {
      const isFull = runs >= runsAtOnce || steps + stepsOf(runId) > stepsAtOnce;
      if (isFull) [runs, steps] = [0, 0];
      if (isFull) slices.push({ families: [], runIds: [] });
      if (isFull || at === 0) slices.at(-1)?.families.push({ root, run_ids: run_ids.slice(at) });
      slices.at(-1)?.runIds.push(runId);
      runs += 1;
      steps += stepsOf(runId);
    }
  }
  return slices;
}
