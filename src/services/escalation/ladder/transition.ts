/** One transition in the making: what it starts from, and what it came to. */

import type { CancelSignal } from '../../../core/cancellation.ts';
import { applyLadder } from '../../../core/ladder/machine.ts';
import type { LadderEvent } from '../../../core/ladder/types.ts';
import { fromNanoUsd, toNanoUsd } from '../../../core/money/nano-usd.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import type { ModelCall } from '../levels/ask-model.ts';
import type { StepLevelDependencies } from '../levels/execute-correction.ts';
import type { ExecuteJob } from '../once/execute-job.ts';
import { readStepTask, type StepTask } from './step-task.ts';
import type { Progress } from './store-progress.ts';
import { type StoredLadder, stepOf } from './stored-ladder.ts';

export interface AdvanceDependencies extends StepLevelDependencies {
  readonly executeJob: ExecuteJob;
}

/** What a transition came to; a number: nothing yet, come again after so many milliseconds. */
export type Work = Progress | number;

export interface Turn {
  readonly row: EscalationRow;
  readonly ladder: StoredLadder;
  readonly call: ModelCall;
  /** Unix seconds. */
  readonly now: number;
}

export function callOf(row: EscalationRow, { command }: StoredLadder, signal: CancelSignal): ModelCall {
  return {
    projectId: row.project_id,
    key: `${row.escalation_id}.${row.transition}`,
    leftUsd: leftOf(row),
    round: 'transients' in command ? command.transients + 1 : 1,
    signal,
  };
}

function leftOf({ max_usd, cost_nano, reserved_nano }: EscalationRow): number | null {
  if (max_usd === null) return null;
  const left = toNanoUsd(Number(max_usd)) - BigInt(cost_nano) - BigInt(reserved_nano);
  return fromNanoUsd(left > 0n ? left : 0n);
}

export function applyEvent(ladder: StoredLadder, event: LadderEvent): StoredLadder {
  return {
    ...ladder,
    ...applyLadder(ladder, event),
  };
}

/** Null for a job that is no step. */
export function readTask(dependencies: AdvanceDependencies, row: EscalationRow): Promise<StepTask | null> {
  return stepOf(row) === null ? Promise.resolve(null) : readStepTask(dependencies, row);
}
