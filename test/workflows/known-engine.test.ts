/** A run of an engine version that a worker does not know waits for one that does, however long that takes. */
import { readFileSync } from 'node:fs';
import { engineVersion } from '@capstan/core/workflow-payloads';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { aPlan } from '../../packages/core/test/run/a-plan.ts';
import {
  type ScriptedRun,
  type ScriptedRuns,
  startScriptedRuns,
  succeeded,
} from '../support/scripted-runs.ts';
import { waitFor } from '../support/wait.ts';

const next = engineVersion + 1;

let runs: ScriptedRuns;
beforeAll(async () => {
  runs = await startScriptedRuns();
});
afterAll(() => runs?.stop());

/** The workflows of today, which know the next version as well. */
function nextBundle(): string {
  const code = readFileSync(inject('workflowBundle'), 'utf8');
  const declared = new RegExp(`const engineVersion = ${engineVersion};`, 'g');
  expect(code.match(declared)).toHaveLength(1);
  return code.replace(declared, `const engineVersion = ${next};`);
}

const plan = aPlan(['a', 'b a']);

/**
 * Starts a run of the next version, and reads why its first task failed. A task that failed before ends by timeout, so
 * a short one saves time. Where a busy worker let the first attempt time out, no failure is recorded: another is
 * started.
 */
async function startNewer(): Promise<{ newer: ScriptedRun; message: string | null | undefined }> {
  for (;;) {
    const short = { workflowTaskTimeout: '1s' } as const;
    const newer = await runs.start(plan, { execute: () => succeeded }, { engine_version: next }, short);
    const first = await waitFor('the first task to end', async () => {
      const { events } = await newer.handle.fetchHistory();
      return events?.find(
        (event) =>
          (event.workflowTaskFailedEventAttributes ?? event.workflowTaskTimedOutEventAttributes) != null,
      );
    });
    const failure = first.workflowTaskFailedEventAttributes?.failure;
    if (failure != null) return { newer, message: failure.message };
  }
}

test('an old worker fails the task of a newer run and not the run, and a newer worker completes it', async () => {
  const known = await runs.start(plan, { execute: () => succeeded });
  expect(await known.ended()).toBe('succeeded');
  const { newer, message } = await startNewer();
  expect(message).toBe(`engine version ${next} waits for a newer worker: this one knows ${engineVersion}`);
  expect((await newer.handle.describe()).status.name).toBe('RUNNING');
  expect(newer.recorded.calls).toEqual([]);

  await runs.replaceWorker({ code: nextBundle() });
  expect(await newer.ended()).toBe('succeeded');
  expect(newer.recorded.calls.map(({ step_id }) => step_id)).toEqual(['a', 'b']);
});
