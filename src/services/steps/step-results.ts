/**
 * Results of finished steps. Small ones stay in memory where they were made, so that a chain of steps on one
 * worker reads nothing back; the others come from the database, all that a step mentions by one query.
 */
import { LRUCache } from 'lru-cache';
import type { Json } from '../../contracts/primitives.ts';
import type { StepScope } from '../../core/expression/evaluation.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { Db } from '../../db/connect.ts';
import { listStepResults } from '../../db/step.ts';

export interface StepResults {
  /** The root `steps` of expressions, with the steps asked for. */
  scopeOf(runId: string, stepIds: readonly string[]): Promise<Record<string, StepScope>>;
  remember(runId: string, stepId: string, output: Json, costUsd: number): void;
}

const cacheBytes = 64 * 1_048_576;
const largestKept = 262_144;

export const createStepResults = (db: Db): StepResults => {
  const kept = new LRUCache<string, { value: StepScope; size: number }>({
    maxSize: cacheBytes,
    sizeCalculation: ({ size }) => size,
  });
  const nameOf = (runId: string, stepId: string): string => `${runId}/${stepId}`;

  return {
    scopeOf: async (runId, stepIds) => {
      const scope: Record<string, StepScope> = {};
      const missing: string[] = [];
      for (const stepId of stepIds) {
        const known = kept.get(nameOf(runId, stepId));
        if (known === undefined) missing.push(stepId);
        else scope[stepId] = known.value;
      }
      if (missing.length === 0) return scope;
      for (const row of await listStepResults(db, runId, missing)) {
        scope[row.step_id] = {
          status: row.state,
          cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
          ...(row.state === 'succeeded' ? { output: row.output } : {}),
          ...(row.error === null ? {} : { error: row.error }),
        };
      }
      return scope;
    },
    remember: (runId, stepId, output, costUsd) => {
      const size = JSON.stringify(output).length + 100;
      if (size > largestKept) return;
      kept.set(nameOf(runId, stepId), { value: { status: 'succeeded', cost_usd: costUsd, output }, size });
    },
  };
};
