/** What an advisor is shown of a ladder whose last execution failed. */
import type { JsonObject } from '../../../contracts/primitives.ts';
import type { Ladder } from '../../../core/ladder/ladder.ts';
import type { AdviseCommand } from '../../../core/ladder/types.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import type { EscalatedTask } from '../ladder/escalated-task.ts';
import { given, shortenError, showAdvice, showHistory } from './prompt-facts.ts';

export interface AdvisedLadder {
  readonly row: EscalationRow;
  readonly ladder: Ladder;
  /** Null for a job by itself. */
  readonly task: EscalatedTask | null;
}

export function showProblem(
  { row, ladder, task }: AdvisedLadder,
  { error, malformed }: AdviseCommand,
): JsonObject {
  return {
    job_type: row.job_type,
    error: shortenError(error),
    ...given('prompt', task === null ? row.prompt : null),
    ...given('context', task === null && row.has_context ? row.context : null),
    ...given('repo_context', row.repo_context),
    ...given('input', task?.current),
    ...given('schema', task?.spec?.schema),
    history: showHistory(ladder.history),
    advice: showAdvice(ladder.advice),
    ...given('invalid_answer', malformed === null ? null : shortenError(malformed)),
  };
}
