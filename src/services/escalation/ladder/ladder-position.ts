/** Where a ladder stands, as its workflow is told: what is to be done now, or how it ended. */
import type { Failure } from '../../../contracts/primitives.ts';
import { humanLevel } from '../../../core/ladder/labels.ts';
import type { LadderPosition, LadderStage } from '../../../core/workflow-payloads/escalate-input.ts';
import type { Db } from '../../../db/connect.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { readStepState } from '../../../db/escalation/escalation-transition.ts';
import { readReview } from '../../../db/review/review.ts';
import { readLadder, stepOf } from './stored-ladder.ts';

/** `delay_ms`: nothing was done yet; the same again after it. */
export interface Advanced extends LadderPosition {
  readonly delay_ms?: number;
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

export async function readPosition(db: Db, row: EscalationRow): Promise<Advanced> {
  return {
    escalation_id: row.escalation_id,
    transition: row.transition,
    command: await readCommand(db, row),
  };
}
