/** What the run's machine asks for, done by activities, child workflows, timers and signals. */
import { ActivityFailure, CancellationScope, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/create-activities.ts';
import type { DrivenRun, RunPorts, Unit } from '../core/run/drive.ts';
import { inlineFollowers } from '../core/run/inline-followers.ts';
import type { Verdict } from '../core/run/machine.ts';
import type { PlannedStep } from '../core/run/plan.ts';
import { unitState } from '../core/run/run-state.ts';
import type {
  CarriedWorkflow,
  ControlSignal,
  RunPipelineInput,
} from '../core/workflow-payloads/run-input.ts';
import { createStepEscalations } from './escalate-step.ts';
import { createStepExecutor } from './execute-step.ts';
import { createRest } from './history-length.ts';
import { createInlineTime } from './inline-time.ts';
import { createProgressRecorder } from './progress-recorder.ts';
import { announceWaiting } from './search-attributes.ts';
import { createStepWaits, type StepWaits } from './step-waits.ts';
import type { ProgressTable } from './web-ui/progress-table.ts';

const { decideSteps } = proxyLocalActivities<Activities>({
  startToCloseTimeout: '60 seconds',
  retry: { initialInterval: '200 ms', maximumInterval: '10 seconds' },
});

export interface PortDependencies {
  readonly input: RunPipelineInput;
  readonly attach: (run: DrivenRun) => void;
  /** The run that was attached. */
  readonly run: () => DrivenRun;
  /** Scope of all that runs and waits. */
  readonly running: CancellationScope;
  readonly table: ProgressTable;
  /** The table has changed. */
  readonly refresh: () => void;
  readonly control: () => ControlSignal;
  readonly moveOn: () => void;
}

export interface WorkflowPorts {
  readonly ports: RunPorts;
  readonly waits: StepWaits;
  /** Whether a unit has waited or escalated. */
  readonly hasWaited: () => boolean;
  /** Resolves when every end that was told is written. */
  readonly recorded: () => Promise<void>;
}

const decidedAtOnce = 200;
/** Of one inline step: what they answer goes into one event. */
const mostFollowers = 8;

export function createWorkflowPorts(dependencies: PortDependencies): WorkflowPorts {
  const { input, run, running, table, refresh, control } = dependencies;
  const { carried } = input;
  let hasWaited = carried?.has_waited ?? false;
  let isAttached = false;
  const recorder = createProgressRecorder(input);
  const inlineTime = createInlineTime(() => run().state);
  const indexOf = new Map(input.plan.steps.map(({ id }, index) => [id, index]));

  const remark = (unit: Unit, text: string | null): void => {
    table.remark(unit.index, text);
    refresh();
  };
  const isAwaiting = (): boolean => run().state.reviews > 0;
  const announce = onChange(carried !== undefined && carriesReview(carried), isAwaiting, (is) =>
    announceWaiting(input, is),
  );
  const waits = createStepWaits({
    scope: running,
    carried,
    isBusy: (stepId, item) => {
      if (!isAttached) return true;
      const state = unitState(run().state, { step: indexOf.get(stepId) ?? -1, item });
      return state === 'running' || state === 'escalating';
    },
    wake: ({ index: step, item }) => run().send({ type: 'step_woken', step, item }),
  });
  const escalations = createStepEscalations({
    input,
    recorder,
    climbing: new CancellationScope({ cancellable: true, parent: running }),
    isCancelled: () => run().state.phase === 'cancelling',
    remark,
  });
  const execute = createStepExecutor({
    input,
    recorder,
    budgetVersion: () => control().budget_version,
    mayRunInline: inlineTime.mayRun,
    followers: ({ index, item, step }) =>
      item > 0 || step.each !== undefined
        ? []
        : inlineFollowers(run().state, index, mostFollowers).flatMap((next) => input.plan.steps[next] ?? []),
    done: (unit, note, isInline) => {
      inlineTime.note(note.duration_ms, isInline);
      table.note(unit.index, note);
      refresh();
    },
    escalated: (unit, place, error) => {
      hasWaited = true;
      escalations.begin(unit, place, error);
    },
  });

  const ports: RunPorts = {
    attach: (driven) => {
      isAttached = true;
      dependencies.attach(driven);
    },
    decide: (steps) => recorder.afterRecords(() => decideAll(input.run_id, steps)),
    executeStep: (unit) => recorder.afterRecords(() => running.run(() => execute(unit, false))),
    escalateStep: (unit) => {
      announce();
      return escalations.climb(unit);
    },
    resumeStep: (unit, wait) => {
      announce();
      remark(unit, null);
      return wait.ladder === true ? escalations.resume(unit, wait) : running.run(() => execute(unit, true));
    },
    giveUpStep: (unit, wait) => {
      waits.forget(unit);
      announce();
      return wait === null || wait.ladder === true
        ? escalations.giveUp(unit, wait)
        : leave(unit, run().state.phase === 'cancelling');
    },
    listen: (unit, wait) => {
      hasWaited = true;
      if (wait.ladder !== true) remark(unit, describeWait(wait.awaiting, wait.until));
      announce();
      waits.listen(unit, wait);
    },
    record: (changes) => {
      void recorder.record(
        changes.map(({ step, ...change }) => ({ step_id: input.plan.steps[step]?.id ?? '', ...change })),
      );
    },
    cancelRunning: () => running.cancel(),
    cancelEscalations: escalations.stop,
    rest: createRest(input),
    moveOn: dependencies.moveOn,
  };

  const leave = async (unit: Unit, isCancelled: boolean) => {
    remark(unit, null);
    const message = isCancelled ? 'the step was cancelled' : 'given up, because another part has failed';
    const error = { code: 'run_cancelled', message };
    await recorder.record([{ step_id: unit.step.id, item: unit.item, state: 'cancelled', error }]);
    return { state: 'cancelled', error } as const;
  };

  return {
    ports,
    waits,
    hasWaited: () => hasWaited,
    recorded: () => recorder.afterRecords(async () => undefined),
  };
}

function describeWait(awaiting: string, until: number | null): string {
  return `${awaiting}${until === null ? '' : ` until ${new Date(until).toISOString()}`}`;
}

function carriesReview({ machine }: CarriedWorkflow): boolean {
  return machine.waits.some(({ wait }) => wait.awaiting === 'review');
}

/** Also when the run is being cancelled: nobody asks for more after that. */
function decideAll(runId: string, steps: readonly PlannedStep[]): Promise<readonly Verdict[]> {
  return CancellationScope.nonCancellable(async () => {
    const verdicts: Verdict[] = [];
    while (verdicts.length < steps.length) {
      const next = steps.slice(verdicts.length, verdicts.length + decidedAtOnce);
      const step_ids = next.map(({ id }) => id);
      verdicts.push(...(await decideSteps({ run_id: runId, step_ids }).catch(undecided(step_ids))));
    }
    return verdicts;
  });
}

function undecided(stepIds: readonly string[]) {
  return (error: unknown): Verdict[] => {
    if (!(error instanceof ActivityFailure)) throw error;
    const failure = { code: 'internal', message: `not decided: ${error.cause?.message ?? error.message}` };
    return stepIds.map(() => ({ type: 'fail', error: failure }));
  };
}

/** Calls `tell` when what is read has changed since the last time. */
function onChange(first: boolean, read: () => boolean, tell: (value: boolean) => void): () => void {
  let last = first;
  return () => {
    const value = read();
    if (value === last) return;
    last = value;
    tell(value);
  };
}
