/** A transition that asks for advice, unless another ladder with the same failure has found out already. */
import type { JsonObject } from '../../../contracts/primitives.ts';
import { historyTextOf } from '../../../core/ladder/error-text.ts';
import { startLadder } from '../../../core/ladder/machine.ts';
import type { AdviseCommand, LadderEvent } from '../../../core/ladder/types.ts';
import { fingerprintOf } from '../ladder/fingerprint.ts';
import type { StepTask } from '../ladder/step-task.ts';
import { type Progress, verdictOf } from '../ladder/store-progress.ts';
import type { StoredLadder } from '../ladder/stored-ladder.ts';
import {
  type AdvanceDependencies,
  applyEvent,
  readTask,
  type Turn,
  type Work,
} from '../ladder/transition.ts';
import { findWayBack, waitForLeader } from '../once/follow-leader.ts';
import { given, shortenError, showAdvice, showHistory } from '../prompts/prompt-facts.ts';
import { askAdvisor } from './ask-advisor.ts';

export async function advise(
  dependencies: AdvanceDependencies,
  turn: Turn,
  command: AdviseCommand,
): Promise<Work> {
  const { row, ladder, call, now } = turn;
  const delayMs = await waitForLeader(dependencies.db, turn);
  if (delayMs !== null) return delayMs;
  const task = await readTask(dependencies, row);
  const signals = task?.signals ?? row.signals;
  const back = await findWayBack(dependencies.matcher, { row, ladder, signals });
  if (back !== null) return goBack(ladder, back);
  const level = command.from_level;
  const facts = factsOf(turn, command, task);
  const end = await askAdvisor(dependencies, call, { level, facts });
  if (end.kind === 'interrupted') return 1_000;
  const next = applyEvent(ladder, toAdviceEvent(end, now));
  return { next, verdict: verdictOf(next), event: { kind: 'advised', level, outcome: end.kind } };
}

function toAdviceEvent(
  end: Exclude<Awaited<ReturnType<typeof askAdvisor>>, { kind: 'interrupted' }>,
  attempted_at: number,
): LadderEvent {
  switch (end.kind) {
    case 'unavailable':
      return { type: 'unavailable' };
    case 'failed': {
      const error = historyTextOf(end.error);
      return { type: 'failed', class: end.class, attempted_at, error, fingerprint: fingerprintOf(error) };
    }
    case 'advised': {
      const { instructions, reasoning, suggested_executor_level } = end;
      return { type: 'advised', instructions, reasoning, suggested_executor_level };
    }
  }
}

function goBack(ladder: StoredLadder, level: number): Progress {
  const { rules, history, advice } = ladder;
  const next = {
    ...ladder,
    ...startLadder({ ...rules, history, advice, start_level: level }),
    has_followed: true,
  };
  return { next, verdict: { kind: 'goes_on' }, event: { kind: 'followed', level } };
}

function factsOf(
  { row, ladder }: Turn,
  { error, malformed }: AdviseCommand,
  task: StepTask | null,
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
