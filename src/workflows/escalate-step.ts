/**
 * The ladders of a run's steps, as the run sees them: a child workflow for each stretch between two decisions of
 * people, a wait in between. What the run does not wait for any more is written as the step's end here.
 */
import { WorkflowIdReusePolicy } from '@temporalio/common';
import {
  type CancellationScope,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  executeChild,
  isCancellation,
  ParentClosePolicy,
} from '@temporalio/workflow';
import type { Failure } from '../contracts/primitives.ts';
import type { RunPorts, StepEnd } from '../core/run/drive.ts';
import type { LadderEnd, LadderPlace, LadderStart } from '../core/run/escalate-input.ts';
import { describeCommand } from '../core/run/ladder-table.ts';
import type { PlannedStep } from '../core/run/plan.ts';
import type { RunPipelineInput } from '../core/run/workflow-input.ts';
import type { escalate } from './escalate.ts';
import { recordStepEnd } from './record-step-end.ts';
import type { ReviewWaits } from './review-waits.ts';

/** How a step stands that escalated. */
interface Escalation {
  readonly escalation_id: string;
  /** Stretches begun. */
  rounds: number;
  from: LadderStart;
  due_at: string;
  /** The last failure that was told. */
  error: Failure;
}

export interface EscalationDependencies {
  readonly input: RunPipelineInput;
  readonly waits: ReviewWaits;
  /** Scope of the ladders, in that of the running steps. */
  readonly climbing: CancellationScope;
  /** Whether somebody has cancelled the run. */
  readonly isCancelled: () => boolean;
  /** What the step waits for, for people; null when that is over. */
  readonly remark: (step: PlannedStep, text: string | null) => void;
  /** Whether somebody is waited for may have changed. */
  readonly announce: () => void;
}

export interface StepEscalations
  extends Pick<RunPorts, 'escalateStep' | 'awaitReview' | 'giveUpStep' | 'cancelEscalations'> {
  /** A step failed for real, and its escalation is there. */
  begin(step: PlannedStep, place: LadderPlace, error: Failure): void;
  /** Whether there is one of any step. */
  hasAny(): boolean;
}

export const createStepEscalations = (dependencies: EscalationDependencies): StepEscalations => {
  const { input, waits, climbing, remark, announce } = dependencies;
  const escalations = new Map<string, Escalation>();
  const of = (step: PlannedStep): Escalation => escalations.get(step.id) as Escalation;

  const end = async (step: PlannedStep, ended: StepEnd): Promise<StepEnd> => {
    remark(step, null);
    if ('error' in ended && ended.state !== 'unknown')
      await recordStepEnd(input, step, ended.state, ended.error);
    return ended;
  };

  const giveUpStep = (step: PlannedStep): Promise<StepEnd> => {
    announce();
    return end(
      step,
      dependencies.isCancelled()
        ? { state: 'cancelled', error: { code: 'run_cancelled', message: 'the step was cancelled' } }
        : { state: 'failed', error: of(step).error },
    );
  };

  const take = (step: PlannedStep, result: LadderEnd): Promise<StepEnd | { readonly state: 'in_review' }> => {
    const escalation = of(step);
    switch (result.outcome) {
      case 'review':
        Object.assign(escalation, {
          from: { review_id: result.review_id },
          due_at: result.due_at,
          error: result.error,
        });
        return Promise.resolve({ state: 'in_review' });
      case 'succeeded':
      case 'skipped':
        return end(step, { state: result.outcome });
      case 'failed':
      case 'cancelled':
        return end(step, { state: result.outcome, error: result.error });
    }
  };

  const fail = (step: PlannedStep, error: unknown): Promise<StepEnd> => {
    if (isCancellation(error)) return giveUpStep(step);
    const cause = error instanceof ChildWorkflowFailure ? error.cause : error;
    const message = `its escalation failed: ${cause instanceof Error ? cause.message : String(cause)}`;
    return end(step, { state: 'failed', error: { code: 'internal', message } });
  };

  return {
    begin: (step, { escalation_id, transition, command }, error) => {
      const from = { transition, command };
      escalations.set(step.id, { escalation_id, rounds: 0, from, due_at: '', error });
      remark(step, describeCommand(command));
    },
    hasAny: () => escalations.size > 0,
    escalateStep: (step) => {
      const escalation = of(step);
      const { from } = escalation;
      if ('command' in from && from.command.type === 'end') return take(step, from.command);
      if (escalation.rounds > 0) remark(step, null);
      announce();
      escalation.rounds += 1;
      return climbing
        .run(() => startLadder(input, step, escalation))
        .then(
          (result) => take(step, result),
          (error: unknown) => fail(step, error),
        );
    },
    awaitReview: (step) => {
      const { from, due_at } = of(step);
      const review_id = 'review_id' in from ? from.review_id : '';
      remark(step, `due ${due_at}, ${review_id}`);
      announce();
      // Cancelled, the step is given up, and nobody listens here any more.
      return waits.over({ review_id, due_at }).catch(() => undefined);
    },
    giveUpStep,
    cancelEscalations: () => climbing.cancel(),
  };
};

const startLadder = (
  input: RunPipelineInput,
  step: PlannedStep,
  { escalation_id, rounds, from }: Escalation,
): Promise<LadderEnd> => {
  const workflowId = `esc/${input.run_id}/${step.id}/0`;
  const { engine_version, heartbeat_timeout_ms, run_url: url } = input;
  return executeChild<typeof escalate>('escalate', {
    args: [{ engine_version, escalation_id, waits_for_reviews: false, from, heartbeat_timeout_ms, url }],
    workflowId: rounds === 1 ? workflowId : `${workflowId}/r${rounds}`,
    workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
    cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    staticSummary: `${step.id} → ${step.capability}`,
  });
};
