import type { Workflow } from '@temporalio/worker/lib/workflow/interface.js';
import { expect, test, vi } from 'vitest';
import { createStallGuard, withGuard } from '../../src/processes/workflow-threads.ts';

function openWork() {
  let end: () => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const work = new Promise<void>((resolve, reject) => {
    end = resolve;
    fail = reject;
  });
  return { work, end, fail };
}

test('work that stays open for all ticks is a stall, reported once', () => {
  const onStall = vi.fn();
  const guard = createStallGuard(3, onStall);
  void guard.during(openWork().work);
  const told = [1, 2, 3, 4].map(() => {
    guard.tick();
    return onStall.mock.calls.length;
  });
  expect(told).toEqual([0, 0, 1, 1]);
});

test('work that settles in time is none, whether it succeeds or fails, and other work counts for itself', async () => {
  const onStall = vi.fn();
  const guard = createStallGuard(2, onStall);
  const [good, bad] = [openWork(), openWork()];
  const both = [guard.during(good.work), guard.during(bad.work)];
  guard.tick();
  good.end();
  bad.fail(new Error('it failed'));
  expect((await Promise.allSettled(both)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  void guard.during(openWork().work);
  guard.tick();
  expect(onStall).not.toHaveBeenCalled();
  guard.tick();
  expect(onStall).toHaveBeenCalledOnce();
});

const lines = [{ ifaceName: '__temporal_logger', fnName: 'warn', args: ['Workflow failed'] }] as never;

async function readLines(activate: Workflow['activate']): Promise<number> {
  const workflow: Workflow = {
    activate,
    getAndResetSinkCalls: async () => lines,
    dispose: async () => undefined,
  };
  const guarded = withGuard(
    workflow,
    createStallGuard(1, () => undefined),
  );
  await guarded.activate({}).catch(() => undefined);
  return (await guarded.getAndResetSinkCalls()).length;
}

test.each([
  ['goes on', { successful: { commands: [{ scheduleLocalActivity: {} }] } }, 0],
  ['completes', { successful: { commands: [{ completeWorkflowExecution: {} }] } }, 0],
  ['fails', { successful: { commands: [{ failWorkflowExecution: {} }] } }, 1],
  ['fails its task', { failed: { failure: {} } }, 1],
] as const)('lines of the log of a workflow that %s', async (_, completion, expected) => {
  expect(await readLines(() => Promise.resolve({ ...completion } as never))).toBe(expected);
});

test('lines of the log of a workflow whose thread answers with an error are fetched', async () => {
  expect(await readLines(() => Promise.reject(new Error('no such workflow')))).toBe(1);
});
