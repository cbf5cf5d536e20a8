/** Asks whether steps happen, and how often. The values that decide it are where the activity runs. */
import { CancellationScope, proxyLocalActivities, TemporalFailure } from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import type { StepVerdict } from '../core/run/machine.ts';
import type { PlannedStep } from '../core/run/plan.ts';
import { listUnits, toSummary } from '../core/workflow-payloads/summary.ts';

function decideActivity(stepIds: readonly string[]): Activities['decideSteps'] {
  return proxyLocalActivities<Activities>({
    summary: toSummary(`whether or how often: ${listUnits(stepIds.map((step_id) => ({ step_id })))}`),
    startToCloseTimeout: '60 seconds',
    retry: { initialInterval: '200 ms', maximumInterval: '10 seconds' },
  }).decideSteps;
}

const decidedAtOnce = 200;

/** Also when the run is being cancelled: nobody asks for more after that. */
export function decideAll(runId: string, steps: readonly PlannedStep[]): Promise<readonly StepVerdict[]> {
  return CancellationScope.nonCancellable(async () => {
    const verdicts: StepVerdict[] = [];
    while (verdicts.length < steps.length) {
      const next = steps.slice(verdicts.length, verdicts.length + decidedAtOnce);
      const step_ids = next.map(({ id }) => id);
      const decide = decideActivity(step_ids);
      verdicts.push(...(await decide({ run_id: runId, step_ids }).catch(undecided(step_ids))));
    }
    return verdicts;
  });
}

function undecided(stepIds: readonly string[]) {
  return (error: unknown): StepVerdict[] => {
    if (!(error instanceof TemporalFailure)) throw error;
    const failure = { code: 'internal', message: `not decided: ${error.cause?.message ?? error.message}` };
    return stepIds.map(() => ({ type: 'fail', error: failure }));
  };
}
