/** How one execution at a level ended, in the ladder's terms, and which skills took part. */
import type { Failure, Json } from '../../contracts/primitives.ts';
import type { RankedSkill } from '../skills/match.ts';
import { type FailureClass, refusalOf } from './classify-failure.ts';
import { type ErrorContext, failedAt } from './ladder.ts';
import type { LadderEvent } from './types.ts';

export type ExecutionEnd =
  /** `result` of a job that is no step. */
  | { readonly kind: 'succeeded'; readonly result?: Json }
  | { readonly kind: 'no_template' | 'gave_up'; readonly error: Failure }
  | { readonly kind: 'failed'; readonly class: FailureClass; readonly error: Failure }
  /** The level has no instance. */
  | { readonly kind: 'unavailable' }
  /** Not done; the same again after the delay. */
  | { readonly kind: 'interrupted'; readonly delayMs: number };

export interface LevelExecution {
  readonly end: ExecutionEnd;
  readonly level: number;
  /** As the provider named it. */
  readonly model: string | null;
  /** Those that were shown to the executor, or whose templates were tried. */
  readonly skills: readonly RankedSkill[];
  /** Ids of those that were used; only they can have caused a failure. */
  readonly used: readonly string[];
  /** The skill whose template made it. */
  readonly solved_by: string | null;
  /** Failures of what was executed at the level before that, the first one first. */
  readonly failed_before: readonly Failure[];
  /** The input of a step that was executed last. */
  readonly input?: Json;
}

export function endExecution(
  level: number,
  end: ExecutionEnd,
  part: Partial<Omit<LevelExecution, 'level' | 'end'>> = {},
): LevelExecution {
  return { level, end, model: null, skills: [], used: [], solved_by: null, failed_before: [], ...part };
}

/** What the machine is told of an end. */
export function toLadderEvent(
  end: Exclude<ExecutionEnd, { kind: 'interrupted' }>,
  context: ErrorContext,
): LadderEvent {
  switch (end.kind) {
    case 'succeeded':
    case 'unavailable':
      return { type: end.kind };
    case 'no_template':
    case 'gave_up':
      return { type: end.kind, ...failedAt(end.error, context) };
    case 'failed': {
      const { class: failureClass, error } = end;
      return { type: 'failed', class: failureClass, ...failedAt(error, context), refusal: refusalOf(error) };
    }
  }
}
