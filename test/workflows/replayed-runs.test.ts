/** A run that another worker takes over is replayed there: what it asked for must not depend on what was ready first. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { StepVerdict } from '@capstan/core/run/machine';
import type { RunPlan } from '@capstan/core/run/plan';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { aPlan } from '../../packages/core/test/run/a-plan.ts';
import {
  type ScriptedRun,
  type ScriptedRuns,
  startScriptedRuns,
  succeeded,
} from '../support/scripted-runs.ts';

let runs: ScriptedRuns;
beforeAll(async () => {
  runs = await startScriptedRuns();
});
afterAll(() => runs?.stop());

function deciding(lines: readonly string[], ids: readonly string[]): RunPlan {
  const plan = aPlan(lines);
  return {
    ...plan,
    steps: plan.steps.map((step) => (ids.includes(step.id) ? { ...step, decides: true as const } : step)),
  };
}

/** The decision about `held` keeps the workflow's turn open until `a` and `b` have ended: what follows them is due at once. */
const plan = deciding(['p', 'held p', 'a', 'b', 'c a', 'd b', 'e c', 'f d'], ['held', 'c', 'd']);

/** How long steps and decisions take that do not end at once. */
function start(takesMs: Readonly<Record<string, number>>, verdict: StepVerdict) {
  return runs.start(plan, {
    execute: async ({ step_id }) => {
      await sleep(takesMs[step_id] ?? 0);
      return succeeded;
    },
    decide: async (id) => {
      await sleep(takesMs[id] ?? 0);
      return id === 'held' ? { type: 'go' } : verdict;
    },
    record: () => sleep(takesMs.record),
  });
}

const busy = { a: 150, b: 150, held: 500, record: 50 };

const ways = [
  ['left out, one after the other', { ...busy, d: 50 }, { type: 'skip' }],
  ['left out, the second first', { ...busy, c: 50 }, { type: 'skip' }],
  ['to happen, one after the other', { ...busy, d: 50 }, { type: 'go' }],
  ['to happen, the second first', { ...busy, c: 50 }, { type: 'go' }],
] as const;

test('two steps that are due in one turn are asked for again in the same way', async () => {
  const ended: ScriptedRun[] = [];
  for (const [what, takesMs, verdict] of ways) {
    const run = await start(takesMs, verdict);
    expect([what, await run.ended()]).toEqual([what, 'succeeded']);
    ended.push(run);
  }
  await runs.replay(...ended);
});
