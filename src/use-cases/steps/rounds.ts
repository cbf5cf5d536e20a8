/**
 * Judges the rounds of a step with `repeat` (R1 to R5 of core/run/repeat/rounds.ts) by their stored outputs, and stores what
 * follows: the next round, or the output of the step. A repeated request gets the same answer.
 */
import { judgeRound } from '@capstan/core/run/repeat/judge-round';
import type { RoundVerdict } from '@capstan/core/run/repeat/rounds';
import type { Ctx } from '../../context.ts';
import { endWithRound, openNextRound, readEndedRound } from '../../db/step/step-rounds.ts';
import { meetsCondition, stepOf } from '../run-data/evaluation.ts';

export interface JudgeRequest {
  readonly run_id: string;
  readonly step_id: string;
  /** The item that the round is, from 1. */
  readonly item: number;
}

/** @throws AppError `not_found` */
export async function judgeStoredRound(
  { db, contexts, results }: Pick<Ctx, 'db' | 'contexts' | 'results'>,
  key: JudgeRequest,
): Promise<RoundVerdict> {
  const context = await contexts.open(key.run_id);
  const step = stepOf(context, key.step_id);
  const { repeat } = step.definition;
  const ended = await readEndedRound(db, key);
  if (repeat === undefined || ended === undefined) {
    const message = `round ${key.item} of step ${key.step_id} has no output`;
    return { type: 'fail', error: { code: 'internal', message } };
  }
  const { output, spent_ms: spentMs, now_ms: nowMs } = ended;
  const holds = await meetsCondition({ context, results }, step, { item: key.item, output });
  const verdict = judgeRound({ repeat, round: key.item, output, holds, spentMs, nowMs });
  switch (verdict.type) {
    case 'again':
      return { type: 'again', until: await openNextRound(db, key, verdict.until) };
    case 'done':
      await endWithRound(db, key, { rounds: key.item });
      return verdict;
    case 'fail':
      return verdict;
  }
}
