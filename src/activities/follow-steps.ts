/** Inline steps that are executed with the one before them. */
import type { StepRequest } from '../services/steps/execute-step.ts';
import type { StepActivityDone } from './execute-step.ts';

export interface Follower extends Pick<StepRequest, 'step_id' | 'escalates'> {
  /** Absent where the activity itself ends before. */
  readonly total_timeout_ms?: number;
}

export interface FollowedStep {
  readonly step_id: string;
  /** Null: it did not succeed at once. How it ends is learnt by asking for it once more: the rows say it. */
  readonly done: StepActivityDone | null;
}

/**
 * One after the other, as long as each succeeds.
 * @param hasTime asked before each
 * @param execute null or a rejection: it did not succeed
 */
export async function followSteps(
  followers: readonly Follower[],
  hasTime: () => boolean,
  execute: (follower: Follower) => Promise<StepActivityDone | null>,
): Promise<FollowedStep[]> {
  const followed: FollowedStep[] = [];
  for (const follower of followers) {
    if (!hasTime()) break;
    const done = await execute(follower).catch(() => null);
    followed.push({ step_id: follower.step_id, done });
    if (done === null) break;
  }
  return followed;
}
