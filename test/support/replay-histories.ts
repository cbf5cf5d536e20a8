/** Replays histories one after another on one worker, because a worker for each costs most of the time. */
import { Worker, type WorkflowBundleOption } from '@temporalio/worker';
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js';

type Histories = Parameters<typeof Worker.runReplayHistories>[1];

/**
 * A replay runs in this thread, and the SDK would leave its hook for every promise there, which compiles a function each
 * time: the test files after it took a fifth more processor time.
 *
 * @returns for each history, in order, the first deviation of today's workflow; null where it replays
 */
export async function replayHistories(
  workflowBundle: WorkflowBundleOption,
  histories: Histories,
): Promise<readonly (Error | null)[]> {
  const found: (Error | null)[] = [];
  try {
    for await (const { error } of Worker.runReplayHistories({ workflowBundle }, histories)) {
      found.push(error ?? null);
    }
    return found;
  } finally {
    globalHandlers.uninstall();
  }
}
