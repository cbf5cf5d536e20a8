import type { FollowedStep, Follower, StepActivityDone } from './step-messages.ts';

/**
 * Executes inline steps together with the one before them: one after the other, as long as each succeeds.
 *
 * @param hasTime asked before each
 * @param execute null or a rejection: it did not succeed
 */
export async function executeFollowers(
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
