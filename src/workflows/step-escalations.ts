/**
 * The ladders of a run's steps, as the run sees them. A child workflow covers each round between two decisions of
 * people, and the wait in between carries everything needed to resume. If the run no longer waits for a ladder, the
 * unit's end is stored here.
 */

import type { Failure } from '@capstan/core/contracts/primitives';
import type { Unit, UnitEnd, UnitWaiting } from '@capstan/core/run/drive';
import type { Wait } from '@capstan/core/run/machine-state';
import { ladderWorkflowId, summarizeUnit } from '@capstan/core/workflow-names';
import type {
  LadderEnd,
  LadderPoint,
  LadderPosition,
  LadderResumption,
  RunPipelineInput,
} from '@capstan/core/workflow-payloads';
import { WorkflowIdReusePolicy } from '@temporalio/common';
import {
  type CancellationScope,
  ChildWorkflowCancellationType,
  ChildWorkflowFailure,
  executeChild,
  isCancellation,
  ParentClosePolicy,
} from '@temporalio/workflow';
import type { CallOffs } from './call-offs.ts';
import type { escalate } from './escalate.ts';
import type { ProgressRecorder } from './progress-recorder.ts';
import { expiryGraceMs } from './waits.ts';
import { describeCommand, searchableLadder } from './web-ui.ts';

/** The state of an escalated unit. */
interface UnitEscalation {
  readonly unit: Unit;
  readonly escalation_id: string;
  /** Rounds begun. */
  readonly rounds: number;
  readonly from: LadderResumption;
  /** The failure that began the escalation, or that preceded the review. */
  readonly error: Failure;
}

export interface StepEscalationDependencies {
  readonly input: RunPipelineInput;
  readonly recorder: ProgressRecorder;
  /** Scope of the ladders, inside that of the running steps. */
  readonly climbing: CancellationScope;
  readonly within: CallOffs['within'];
  readonly whyOf: CallOffs['whyOf'];
  /** Whether a user has cancelled the run. */
  readonly isCancelled: () => boolean;
  /** Shows people what the unit waits for; null when the wait is over. */
  readonly remark: (unit: Unit, text: string | null) => void;
  /** Shows people why the unit ended as it did. */
  readonly ended: (unit: Unit, text: string) => void;
}

export interface StepEscalations {
  /** Begins the ladder of a unit with a real failure, whose escalation exists. */
  begin(unit: Unit, place: LadderPosition, error: Failure): void;
  climb(unit: Unit): Promise<UnitEnd | UnitWaiting>;
  /** Resumes after the unit's review, after a pause of the run, or when its call in line is called. */
  resume(unit: Unit, wait: Wait): Promise<UnitEnd | UnitWaiting>;
  giveUp(unit: Unit, wait: Wait | null): Promise<UnitEnd>;
  /** Asks every ladder to end soon. */
  stop(): void;
}

/** A placeholder for the failure in the unit's row: waits for people carry no texts from history to history. */
const keptFailure: Failure = { code: 'ladder_exhausted', message: 'its last failure stays' };

export function createStepEscalations(dependencies: StepEscalationDependencies): StepEscalations {
  const begun = new Map<string, UnitEscalation>();
  const nameOf = ({ step, item }: Unit): string => `${step.id}/${item}`;
  return {
    begin: (unit, { escalation_id, transition, command }, error) => {
      begun.set(nameOf(unit), { unit, escalation_id, rounds: 0, from: { transition, command }, error });
      dependencies.remark(unit, describeCommand(command));
    },
    climb: (unit) => {
      const escalation = begun.get(nameOf(unit)) as UnitEscalation;
      begun.delete(nameOf(unit));
      const { from } = escalation;
      const isAtItsEnd = 'command' in from && from.command.type === 'end';
      return isAtItsEnd
        ? takeEnd(dependencies, escalation, from.command as LadderEnd)
        : climb(dependencies, escalation);
    },
    resume: (unit, { ref }) => {
      const { escalation_id, rounds, ...where } = ref as unknown as WaitingLadder;
      dependencies.remark(unit, null);
      const from = 'from' in where ? where.from : where;
      return climb(dependencies, { unit, escalation_id, rounds, from, error: keptFailure });
    },
    stop: () => dependencies.climbing.cancel(),
    giveUp: (unit, wait) => {
      const failed = wait === null ? begun.get(nameOf(unit))?.error : undefined;
      return giveUp(dependencies, unit, failed ?? keptFailure);
    },
  };
}

function climb(
  dependencies: StepEscalationDependencies,
  before: UnitEscalation,
): Promise<UnitEnd | UnitWaiting> {
  const escalation = { ...before, rounds: before.rounds + 1 };
  return dependencies
    .within(before.unit, dependencies.climbing, () => startLadder(dependencies.input, escalation))
    .then(
      (end) => takeEnd(dependencies, escalation, end),
      (error: unknown) => endFailed(dependencies, escalation, error),
    );
}

/** Handles the end of a round: the unit waits for a review, or ends. */
function takeEnd(
  dependencies: StepEscalationDependencies,
  { unit, escalation_id, rounds, error }: UnitEscalation,
  end: LadderEnd,
): Promise<UnitEnd | UnitWaiting> {
  switch (end.outcome) {
    case 'review': {
      const { review_id, due_at } = end;
      const why = error === keptFailure ? '' : `, because of ${error.code}: ${error.message}`;
      dependencies.remark(unit, `a person is asked until ${due_at} (${review_id})${why}`);
      const ref = { escalation_id, rounds, review_id };
      const until = Date.parse(due_at) + expiryGraceMs;
      return Promise.resolve({ state: 'waiting', wait: { awaiting: 'review', until, ladder: true, ref } });
    }
    case 'held': {
      const ref = { escalation_id, rounds, from: { ...end.from } } as unknown as Wait['ref'];
      const wait =
        end.in_line === undefined
          ? ({ awaiting: 'retry', until: Date.now() } as const)
          : ({ awaiting: 'slot', until: end.in_line.until } as const);
      return Promise.resolve({ state: 'waiting', wait: { ...wait, ladder: true, ref } });
    }
    case 'succeeded':
    case 'skipped':
      dependencies.ended(unit, `its ladder ended: ${describeCommand(end)} (${escalation_id})`);
      return endUnit(dependencies, unit, { state: end.outcome });
    case 'failed':
    case 'cancelled':
      return endUnit(dependencies, unit, { state: end.outcome, error: end.error });
  }
}

function endFailed(
  dependencies: StepEscalationDependencies,
  { unit, error: failed }: UnitEscalation,
  error: unknown,
): Promise<UnitEnd> {
  if (isCancellation(error)) return giveUp(dependencies, unit, failed);
  const cause = error instanceof ChildWorkflowFailure ? error.cause : error;
  const message = `its escalation failed: ${cause instanceof Error ? cause.message : String(cause)}`;
  return endUnit(dependencies, unit, { state: 'failed', error: { code: 'internal', message } });
}

function giveUp(dependencies: StepEscalationDependencies, unit: Unit, failed: Failure): Promise<UnitEnd> {
  const why = dependencies.whyOf(unit);
  if (why !== undefined) return endUnit(dependencies, unit, { state: 'cancelled', error: why });
  return endUnit(
    dependencies,
    unit,
    dependencies.isCancelled()
      ? { state: 'cancelled', error: { code: 'run_cancelled', message: 'the step was cancelled' } }
      : { state: 'failed', error: failed },
  );
}

async function endUnit(
  { remark, ended: tell, recorder }: StepEscalationDependencies,
  unit: Unit,
  ended: UnitEnd,
): Promise<UnitEnd> {
  remark(unit, null);
  const { step, item } = unit;
  if (ended.state === 'failed' || ended.state === 'cancelled') {
    const { state, error } = ended;
    const isKnown = error === keptFailure;
    tell(unit, `${error.code}: ${error.message}`);
    await recorder.record([{ step_id: step.id, item, state, ...(isKnown ? {} : { error }) }]);
  }
  return ended;
}

/** The data that a ladder's wait carries: the review that it waits for, or where a pause or a line holds it. */
type WaitingLadder = Pick<UnitEscalation, 'escalation_id' | 'rounds'> &
  ({ readonly review_id: string } | { readonly from: LadderPoint });

function startLadder(
  input: RunPipelineInput,
  { unit, escalation_id, rounds, from }: UnitEscalation,
): Promise<LadderEnd> {
  const { engine_version, heartbeat_timeout_ms, run_url: url } = input;
  return executeChild<typeof escalate>('escalate', {
    ...searchableLadder(input),
    args: [{ engine_version, escalation_id, waits_for_reviews: false, from, heartbeat_timeout_ms, url }],
    workflowId: ladderWorkflowId(input, { step_id: unit.step.id, item: unit.item, round: rounds }),
    workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
    cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    staticSummary: summarizeUnit(unit, rounds === 1 ? 'its ladder' : 'its ladder after a decision'),
  });
}
