/** The budget that a run waits for: its own ceiling, that of a run above it, or the budget of a day, a key or a label. */
import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import type { RunStep, RunStepItem } from '@capstan/core/contracts/run-step';
import { useQuery } from '@tanstack/react-query';
import { askPlainly } from './client.ts';

/** Deeper runs are not looked at. */
const mostBelow = 10;

type Waiter = Pick<RunStep, 'awaiting' | 'review_id' | 'sub_run_id'>;

/** The step itself, or its first items that wait. */
async function waitersOf(runId: string, step: RunStep): Promise<readonly Waiter[]> {
  if ((step.items?.waiting ?? 0) === 0) return [step];
  const path = `/v1/runs/${runId}/steps/${step.id}/items?state=waiting&output=none&limit=20`;
  return (await askPlainly<{ readonly items: readonly RunStepItem[] }>(path)).items;
}

async function findReview({ run_id, steps }: Run, below: number): Promise<Review | null> {
  for (const step of steps) {
    for (const { awaiting, review_id, sub_run_id } of await waitersOf(run_id, step)) {
      if (awaiting === 'budget' && review_id !== undefined)
        return askPlainly<Review>(`/v1/reviews/${review_id}`);
      if (awaiting !== 'run' || sub_run_id === undefined || below === 0) continue;
      const child = await askPlainly<Run>(`/v1/runs/${sub_run_id}`);
      const found = child.awaiting?.includes('budget') ? await findReview(child, below - 1) : null;
      if (found !== null) return found;
    }
  }
  return null;
}

/** The open review about it; null for none, undefined until it is known. */
export function useBudgetReview(run: Run): Review | null | undefined {
  return useQuery({
    queryKey: ['reviews', 'budget', run.run_id],
    queryFn: () => findReview(run, mostBelow),
    enabled: run.awaiting?.includes('budget') === true,
  }).data;
}

/** Whether raising the ceiling of the run itself lets it continue. */
export function isOwnBudget(run: Pick<Run, 'run_id'>, review: Review | null | undefined): boolean {
  return review == null || review.run_id === run.run_id;
}
