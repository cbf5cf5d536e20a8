/** How many steps of runs are in which state, those that have not begun included. */
import { LRUCache } from 'lru-cache';
import type { StepState } from '../../contracts/run.ts';
import type { Db } from '../../db/connect.ts';
import { countDefinitionSteps } from '../../db/run/run-changes.ts';
import type { StepCountColumns } from '../../db/run/run-standing.ts';

export type StepCounts = Partial<Record<StepState, number>>;

function withPending(begun: StepCountColumns['step_counts'], size: number): StepCounts {
  const known = Object.values(begun).reduce((sum, count) => sum + count, 0);
  return size > known ? { ...begun, pending: size - known } : { ...begun };
}

/** Definitions do not change, so each is counted once in a while, and those of a page by one query. */
export function createStepCounter(db: Db) {
  const sizes = new LRUCache<string, number>({ max: 1_000 });
  return async (rows: readonly StepCountColumns[]): Promise<readonly StepCounts[]> => {
    const unknown = new Set(rows.map(({ digest }) => digest).filter((digest) => !sizes.has(digest)));
    const counted = unknown.size === 0 ? new Map() : await countDefinitionSteps(db, [...unknown]);
    for (const [digest, steps] of counted) sizes.set(digest, steps);
    return rows.map(({ digest, step_counts }) =>
      withPending(step_counts, sizes.get(digest) ?? counted.get(digest) ?? 0),
    );
  };
}
