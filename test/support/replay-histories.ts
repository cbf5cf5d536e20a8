/** Histories replayed one after the other by one worker, as one replays them in earnest: a worker for each costs most of the time. */
import { Worker, type WorkflowBundleOption } from '@temporalio/worker';

type Histories = Parameters<typeof Worker.runReplayHistories>[1];

/** @returns for each history, in their order, what the workflow would do otherwise now; null where it replays */
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
