/**
 * Reads and writes the ladder in the row of an escalation. Its lists have columns of their own, which the database only
 * lets grow. The row also gives the position that the ladder's workflow reads: the next command, or the ladder's end.
 */

import { createHash } from 'node:crypto';
import type { CallCaller, CallingKey } from '@capstan/core/call/caller';
import type { ModelSpec } from '@capstan/core/contracts/escalation';
import type { Failure } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import { maskError } from '@capstan/core/ladder/error-text';
import type { Ladder } from '@capstan/core/ladder/ladder';
import { modelOf, readLevelModels } from '@capstan/core/ladder/level-models';
import { humanLevel, labelOf } from '@capstan/core/ladder/levels';
import type { Advanced, LadderStage } from '@capstan/core/workflow-payloads';
import type { Ctx } from '../../../context.ts';
import type { StepItemKey } from '../../../db/attempt/attempt.ts';
import type { Db } from '../../../db/connect.ts';
import { type EscalationRow, type NewEscalation, readEscalation } from '../../../db/escalation/escalation.ts';
import { readStepState } from '../../../db/escalation/escalation-transition.ts';
import { readReview } from '../../../db/review/review.ts';

type StoredColumns = Pick<NewEscalation, 'ladder' | 'escalation_history' | 'escalation_advice'>;

export function readLadder({ ladder, escalation_history, escalation_advice }: StoredColumns): Ladder {
  return {
    ...(ladder as Omit<Ladder, 'history' | 'advice'>),
    history: escalation_history,
    advice: escalation_advice,
  };
}

/** The columns that keep a ladder. */
export function storeLadder({ history, advice, ...ladder }: Ladder): StoredColumns {
  return { ladder, escalation_history: history, escalation_advice: advice };
}

/** @throws AppError `not_found` */
export async function requireEscalation(db: Db, escalationId: string): Promise<EscalationRow> {
  const row = await readEscalation(db, escalationId);
  if (row === undefined) throw noEscalation(escalationId);
  return row;
}

export function noEscalation(escalationId: string): AppError {
  return new AppError('not_found', `there is no escalation ${escalationId}`);
}

/** The ladder's step; null for a ladder without one. */
export function stepOf({ run_id, step_id, item }: EscalationRow): StepItemKey | null {
  return run_id === null || step_id === null ? null : { run_id, step_id, item: item ?? 0 };
}

/** Whose calls the ladder makes: those of its run, or of the key that has asked for it (O4). */
export function callerOf({ run_id, caller }: EscalationRow): CallCaller {
  return run_id === null ? (caller as CallingKey) : { run_id };
}

export function modelSpecOf(
  { config }: Pick<Ctx, 'config'>,
  level: number,
  model: string | null = null,
): ModelSpec {
  const capability = modelOf(readLevelModels(config.LADDER_LEVELS), level);
  return { level, label: labelOf(level), capability, model };
}

const unknownError: Failure = { code: 'ladder_exhausted', message: 'the escalation ended without an error' };

function nextCommand(row: EscalationRow): LadderStage {
  const { command, decided } = readLadder(row);
  if (decided !== null) return { type: 'execute', level: humanLevel };
  switch (command.type) {
    case 'execute':
      return { type: 'execute', level: command.level };
    case 'advise':
      return { type: 'advise', level: command.from_level };
    case 'succeed':
    case 'stop':
      return { type: 'end', outcome: 'failed', error: row.error ?? unknownError };
  }
}

async function readCommand(db: Db, row: EscalationRow): Promise<LadderStage> {
  const error = row.error ?? unknownError;
  switch (row.state) {
    case 'running':
      return nextCommand(row);
    case 'in_review': {
      const review = row.review_id === null ? undefined : await readReview(db, row.review_id);
      const due_at = (review?.due_at ?? new Date()).toISOString();
      return { type: 'end', outcome: 'review', review_id: row.review_id ?? '', due_at, error };
    }
    case 'succeeded': {
      const step = stepOf(row);
      const isSkipped = step !== null && (await readStepState(db, step)) === 'skipped';
      if (isSkipped) return { type: 'end', outcome: 'skipped' };
      return {
        type: 'end',
        outcome: 'succeeded',
        ...(row.skill_id === null ? {} : { skill_id: row.skill_id }),
      };
    }
    case 'failed':
    case 'cancelled':
      return { type: 'end', outcome: row.state, error };
  }
}

/** Reads the position of a ladder for its workflow: the next command, or the ladder's end. */
export async function readPosition(db: Db, row: EscalationRow): Promise<Advanced> {
  return {
    escalation_id: row.escalation_id,
    transition: row.transition,
    command: await readCommand(db, row),
  };
}

/** Identifies a failure: 16 bytes of SHA-256 of the masked text, as hex. Equal values mean the same failure. */
export function fingerprintOf(error: string): string {
  return createHash('sha256').update(maskError(error)).digest('hex').slice(0, 32);
}
