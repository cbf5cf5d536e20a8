/** How many steps of runs are in which state, those that have not begun included. */
import { LRUCache } from 'lru-cache';
import type { Db } from '../../db/connect.ts';
import { countDefinitionSteps } from '../../db/run/run-changes.ts';
import type { StepCountColumns } from '../../db/run/run-standing.ts';

type Counts = StepCountColumns['step_counts'];

function withPending(begun: Counts, size: number): Counts {
  const known = Object.values(begun).reduce((sum, count) => sum + count, 0);
  return size > known ? { ...begun, pending: size - known } : begun;
}

/** Definitions do not change, so each is counted once in a while, and those of a page by one query. */
export function createStepCounter(db: Db) {
  const sizes = new LRUCache<string, number>({ max: 1_000 });
  /** @returns the rows with the steps that have no row yet, as pending */
  return async <Row extends StepCountColumns>(rows: readonly Row[]): Promise<readonly Row[]> => {
    const unknown = new Set(rows.map(({ digest }) => digest).filter((digest) => !sizes.has(digest)));
    const counted = unknown.size === 0 ? [] : await countDefinitionSteps(db, [...unknown]);
    for (const [digest, steps] of counted) sizes.set(digest, steps);
    return rows.map((row) => ({
      ...row,
      step_counts: withPending(row.step_counts, sizes.get(row.digest) ?? 0),
    }));
  };
}
