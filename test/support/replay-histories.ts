/** Replays histories one after another on one worker, because a worker for each costs most of the time. */
import { Worker, type WorkflowBundleOption } from '@temporalio/worker';

type Histories = Parameters<typeof Worker.runReplayHistories>[1];

/** @returns for each history, in order, the first deviation of today's workflow; null where it replays */
export async function replayHistories(
  workflowBundle: WorkflowBundleOption,
  histories: Histories,
): Promise<readonly (Error | null)[]> {
  const found: (Error | null)[] = [];
  for await (const { error } of Worker.runReplayHistories({ workflowBundle }, histories)) {
    found.push(error ?? null);
  }
  return found;
}
