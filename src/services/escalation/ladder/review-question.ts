/** What a person is shown of a ladder that needs one: everything that a decision can be made from. */
import type { BudgetRefusal } from '../../../contracts/money.ts';
import type { JsonObject } from '../../../contracts/primitives.ts';
import type { ReviewPayload } from '../../../contracts/review.ts';
import { toWireAdvice, toWireAttempt } from '../../../core/ladder/carry-lists.ts';
import { proposeCorrections } from '../../../core/ladder/correction.ts';
import type { Ladder } from '../../../core/ladder/ladder.ts';
import { reviewDueMs } from '../../../core/ladder/limits.ts';
import { reviewKindOf } from '../../../core/ladder/stop-reason.ts';
import { fromNanoUsd } from '../../../core/money/nano-usd.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { budgetScopeOf } from '../../reviews/budget-scope.ts';
import { readStepTask, type TaskDependencies } from './escalated-task.ts';
import { stepOf } from './stored-ladder.ts';

export interface ReviewQuestion {
  readonly payload: ReviewPayload;
  readonly due_in_ms: number;
  /** The budget that has no room; a raise raises it, not the ladder's own limit. */
  readonly shortage?: { readonly subject: string; readonly minimum_usd: number };
}

function shortageOf({ project_id, run_id }: EscalationRow, refusal: BudgetRefusal | undefined) {
  if (refusal === undefined) return {};
  const subject = budgetScopeOf(refusal, { project_id, run_id: run_id ?? '' });
  return { shortage: { subject, minimum_usd: refusal.minimum_usd } };
}

/**
 * What a person has to put right: of a step what its own call failed of, which is first in the history, whatever a model
 * has made of it since; of what only an operator or money can change, what was seen last.
 */
function errorsOf(row: EscalationRow, { command, history }: Ladder): { error: string; last_error?: string } {
  const seen = command.type === 'stop' ? command.error : null;
  const last = seen ?? history.at(-1)?.error ?? '';
  const isOfInput = command.type === 'stop' && reviewKindOf(command.reason) === 'escalation';
  const error = stepOf(row) !== null && isOfInput ? (history[0]?.error ?? last) : last;
  return error === last ? { error } : { error, last_error: last };
}

/** What is shown of any ladder. */
function showLadder(row: EscalationRow, ladder: Ladder): ReviewPayload {
  const { command, history, advice } = ladder;
  const { error, ...seenLast } = errorsOf(row, ladder);
  const details: JsonObject = {
    escalation_id: row.escalation_id,
    ...(command.type === 'stop' ? { reason: command.reason, ...command.refusal } : {}),
    ...(row.max_usd === null ? {} : { max_usd: Number(row.max_usd) }),
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    ...seenLast,
  };
  return {
    job_type: row.job_type,
    error,
    history: history.map(toWireAttempt),
    advice: advice.map(toWireAdvice),
    details,
  };
}

/** @param next the ladder that stopped, with its lists */
export async function writeQuestion(
  dependencies: TaskDependencies,
  row: EscalationRow,
  next: Ladder,
): Promise<ReviewQuestion> {
  const common = showLadder(row, next);
  const { command } = next;
  const shortage = shortageOf(row, command.type === 'stop' ? command.refusal : undefined);
  if (stepOf(row) === null) {
    const { prompt, context, has_context, repo_context } = row;
    const input = { prompt, ...(has_context ? { context } : {}), repo_context };
    return {
      payload: { ...common, input, allow_output: true },
      due_in_ms: reviewDueMs('standard'),
      ...shortage,
    };
  }
  // What the transition itself has corrected has failed by now.
  const task = await readStepTask(dependencies, { ...row, transition: row.transition + 1 });
  const { definition, spec, current, priority } = task;
  const findings = spec?.find(current) ?? [];
  const payload: ReviewPayload = {
    ...common,
    input: current,
    validation_errors: findings.map(({ pointer, message }) => ({ pointer, message })),
    proposals: proposeCorrections(task),
    ...(spec === null ? {} : { schema: spec.schema }),
    allow_output: definition.allow_output ?? false,
    optional: definition.optional ?? false,
  };
  return { payload, due_in_ms: reviewDueMs(priority), ...shortage };
}
