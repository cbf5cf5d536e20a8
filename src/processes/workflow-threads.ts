/**
 * The worker, with fewer ways between its main thread and the threads of its workflows.
 *
 * One time limit for each activation, instead of one for each call into a sandbox: that of the SDK starts a thread of
 * the operating system for every call and waits for its end, about ten times in a short run. Workflows are our own code,
 * and their loops are bounded. If one still does not answer, its thread answers no other workflow either, so the process
 * ends, and is started again.
 *
 * Lines of the log are fetched from a workflow that fails. The SDK asks after every activation, before it passes on the
 * result; everything else that it writes there is below the level of our log.
 */
import { type CompiledWorkerOptions, type Logger, Worker } from '@temporalio/worker';
import type { Workflow, WorkflowCreator } from '@temporalio/worker/lib/workflow/interface.js';
import type { WorkflowBundleWithSourceMapAndFilename } from '@temporalio/worker/lib/workflow/workflow-worker-thread/input.js';

type Completion = Awaited<ReturnType<Workflow['activate']>>;

export interface StallGuard {
  /** @returns the same promise, which the guard counts as open until it settles */
  during<Result>(work: Promise<Result>): Promise<Result>;
  /** Time passes. A stopped machine does not call it, so that its pause is no stall. */
  tick(): void;
}

/** @param onStall called when work is open for that many ticks */
export function createStallGuard(mostTicks: number, onStall: () => void): StallGuard {
  const open = new Set<{ ticks: number }>();
  return {
    during: (work) => {
      const entry = { ticks: 0 };
      const close = (): boolean => open.delete(entry);
      open.add(entry);
      work.then(close, close);
      return work;
    },
    tick: () => {
      for (const entry of open) {
        entry.ticks += 1;
        if (entry.ticks === mostTicks) onStall();
      }
    },
  };
}

const tickMs = 5_000;
const mostTicks = 12;

function isFailure({ failed, successful }: Completion): boolean {
  const commands = successful?.commands ?? [];
  return (
    (failed ?? null) !== null || commands.some((command) => (command.failWorkflowExecution ?? null) !== null)
  );
}

/** The workflow, which is asked for lines of the log only after a failure. */
export function withGuard(workflow: Workflow, { during }: Pick<StallGuard, 'during'>): Workflow {
  let mayTell = true;
  return {
    activate: async (activation) => {
      mayTell = true;
      const completion = await during(workflow.activate(activation));
      mayTell = isFailure(completion);
      return completion;
    },
    getAndResetSinkCalls: async () => (mayTell ? workflow.getAndResetSinkCalls() : []),
    dispose: () => workflow.dispose(),
  };
}

/** The SDK reads the limit from these options, though they do not declare that there may be none. */
function withoutLimit(options: CompiledWorkerOptions): CompiledWorkerOptions {
  return Object.assign({}, options, { isolateExecutionTimeoutMs: undefined });
}

export class EngineWorker extends Worker {
  protected static override async createWorkflowCreator(
    bundle: WorkflowBundleWithSourceMapAndFilename,
    options: CompiledWorkerOptions,
    logger: Logger,
  ): Promise<WorkflowCreator> {
    const creator = await Worker.createWorkflowCreator(bundle, withoutLimit(options), logger);
    const guard = createStallGuard(mostTicks, () => {
      logger.error(`a workflow has computed for ${(mostTicks * tickMs) / 1_000} s: the worker ends`);
      process.exit(1);
    });
    const timer = setInterval(guard.tick, tickMs).unref();
    return {
      createWorkflow: async (given) => withGuard(await creator.createWorkflow(given), guard),
      destroy: () => {
        clearInterval(timer);
        return creator.destroy();
      },
    };
  }
}
