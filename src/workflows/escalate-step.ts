/**
 * The ladders of a run's steps, as the run sees them: a child workflow for each stretch between two decisions of
 * people, a wait in between that carries all that is needed to go on. What the run does not wait for any more is
 * written as the unit's end here.
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
import type { StepEnd, StepWaits, Unit } from '../core/run/drive.ts';
import type { Wait } from '../core/run/wait.ts';
import type { LadderEnd, LadderPlace, LadderStart } from '../core/workflow-payloads/escalate-input.ts';
import type { RunPipelineInput } from '../core/workflow-payloads/run-input.ts';
import type { escalate } from './escalate.ts';
import { summaryOf } from './execute-step.ts';
import type { ProgressRecorder } from './progress-recorder.ts';
import { expiryGraceMs } from './review-waits.ts';
import { describeCommand } from './web-ui/ladder-table.ts';

/** How a unit stands that escalated. */
interface Escalation {
  readonly escalation_id: string;
  /** Stretches begun. */
  readonly rounds: number;
  readonly from: LadderStart;
  /** That began it, or went before the review. */
  readonly error: Failure;
}

export interface EscalationDependencies {
  readonly input: RunPipelineInput;
  readonly recorder: ProgressRecorder;
  /** Scope of the ladders, in that of the running steps. */
  readonly climbing: CancellationScope;
  /** Whether somebody has cancelled the run. */
  readonly isCancelled: () => boolean;
  /** What the unit waits for, for people; null when that is over. */
  readonly remark: (unit: Unit, text: string | null) => void;
}

export interface StepEscalations {
  /** A unit failed for real, and its escalation is there. */
  begin(unit: Unit, place: LadderPlace, error: Failure): void;
  climb(unit: Unit): Promise<StepEnd | StepWaits>;
  /** After its review. */
  resume(unit: Unit, wait: Wait): Promise<StepEnd | StepWaits>;
  giveUp(unit: Unit, wait: Wait | null): Promise<StepEnd>;
  /** Asks every ladder to end soon. */
  stop(): void;
}

/** The one that the unit's row has: what waits for people carries no texts from history to history. */
const keptFailure: Failure = { code: 'ladder_exhausted', message: 'its last failure stays' };

export function createStepEscalations(dependencies: EscalationDependencies): StepEscalations {
  const { input, recorder, climbing, remark } = dependencies;
  const begun = new Map<string, Escalation>();
  const nameOf = ({ step, item }: Unit): string => `${step.id}/${item}`;

  const end = async (unit: Unit, ended: StepEnd): Promise<StepEnd> => {
    remark(unit, null);
    const { step, item } = unit;
    if (ended.state === 'failed' || ended.state === 'cancelled') {
      const { state, error } = ended;
      const isKnown = error === keptFailure;
      await recorder.record([{ step_id: step.id, item, state, ...(isKnown ? {} : { error }) }]);
    }
    return ended;
  };

  const giveUp = (unit: Unit, failed: Failure): Promise<StepEnd> =>
    end(
      unit,
      dependencies.isCancelled()
        ? { state: 'cancelled', error: { code: 'run_cancelled', message: 'the step was cancelled' } }
        : { state: 'failed', error: failed },
    );

  const take = (
    unit: Unit,
    { escalation_id, rounds }: Escalation,
    result: LadderEnd,
  ): Promise<StepEnd | StepWaits> => {
    switch (result.outcome) {
      case 'review': {
        const { review_id, due_at } = result;
        remark(unit, `due ${due_at}, ${review_id}`);
        const ref = { escalation_id, rounds, review_id };
        const until = Date.parse(due_at) + expiryGraceMs;
        return Promise.resolve({ state: 'waiting', wait: { awaiting: 'review', until, ladder: true, ref } });
      }
      case 'succeeded':
      case 'skipped':
        return end(unit, { state: result.outcome });
      case 'failed':
      case 'cancelled':
        return end(unit, { state: result.outcome, error: result.error });
    }
  };

  const fail = (unit: Unit, { error: failed }: Escalation, error: unknown): Promise<StepEnd> => {
    if (isCancellation(error)) return giveUp(unit, failed);
    const cause = error instanceof ChildWorkflowFailure ? error.cause : error;
    const message = `its escalation failed: ${cause instanceof Error ? cause.message : String(cause)}`;
    return end(unit, { state: 'failed', error: { code: 'internal', message } });
  };

  const climb = (unit: Unit, before: Escalation): Promise<StepEnd | StepWaits> => {
    const escalation = { ...before, rounds: before.rounds + 1 };
    return climbing
      .run(() => startLadder(input, unit, escalation))
      .then(
        (result) => take(unit, escalation, result),
        (error: unknown) => fail(unit, escalation, error),
      );
  };

  return {
    begin: (unit, { escalation_id, transition, command }, error) => {
      begun.set(nameOf(unit), { escalation_id, rounds: 0, from: { transition, command }, error });
      remark(unit, describeCommand(command));
    },
    climb: (unit) => {
      const escalation = begun.get(nameOf(unit)) as Escalation;
      begun.delete(nameOf(unit));
      const { from } = escalation;
      const isAtItsEnd = 'command' in from && from.command.type === 'end';
      return isAtItsEnd ? take(unit, escalation, from.command as LadderEnd) : climb(unit, escalation);
    },
    resume: (unit, { ref }) => {
      const { escalation_id, rounds, review_id } = ref as unknown as LadderRef;
      remark(unit, null);
      return climb(unit, { escalation_id, rounds, from: { review_id }, error: keptFailure });
    },
    stop: () => climbing.cancel(),
    giveUp: (unit, wait) => {
      const failed = wait === null ? begun.get(nameOf(unit))?.error : undefined;
      return giveUp(unit, failed ?? keptFailure);
    },
  };
}

/** What a ladder's wait carries. */
interface LadderRef extends Pick<Escalation, 'escalation_id' | 'rounds'> {
  readonly review_id: string;
}

function startLadder(
  input: RunPipelineInput,
  unit: Unit,
  { escalation_id, rounds, from }: Escalation,
): Promise<LadderEnd> {
  const workflowId = `esc/${input.run_id}/${unit.step.id}/${unit.item}`;
  const { engine_version, heartbeat_timeout_ms, run_url: url } = input;
  return executeChild<typeof escalate>('escalate', {
    args: [{ engine_version, escalation_id, waits_for_reviews: false, from, heartbeat_timeout_ms, url }],
    workflowId: rounds === 1 ? workflowId : `${workflowId}/r${rounds}`,
    workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
    cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    staticSummary: summaryOf(unit),
  });
}
