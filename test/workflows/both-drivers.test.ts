/**
 * Random pipelines with conditions, rules, items, waits and failures, driven by the workflow on a real Temporal and by
 * the mock run in virtual time: they end equal, step by step and item by item, also across
 * histories, and every history of the workflow replays.
 * BOTH_DRIVERS_RUNS and BOTH_DRIVERS_SEED: how many, and which. The long form: `BOTH_DRIVERS_RUNS=300`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApplicationFailure } from '@temporalio/common';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { planRun } from '../../src/core/run/plan-run.ts';
import { runLocally } from '../../src/mock-run/run-locally.ts';
import { anySteps, job, mocks, type RandomStep, type Task, toPipeline } from '../mock-run/any-pipeline.ts';
import { type Script, type ScriptedRuns, startScriptedRuns, succeeded } from '../support/scripted-runs.ts';

const numRuns = Number(process.env.BOTH_DRIVERS_RUNS ?? 12);
const seed = Number(process.env.BOTH_DRIVERS_SEED ?? 20_261_122);
/** As many at once as the workers of one process take well. */
const batch = 12;

let remembering: ScriptedRuns;
let forgetful: ScriptedRuns;
beforeAll(async () => {
  [remembering, forgetful] = await Promise.all([startScriptedRuns(), startScriptedRuns(0)]);
});
afterAll(() => Promise.all([remembering?.stop(), forgetful?.stop()]));

interface EndedRun {
  readonly outcome: string;
  /** State and output by step and item; what never began is not among them. */
  readonly units: ReadonlyMap<string, { readonly state: string; readonly output?: unknown }>;
}

/** Items begin one by one: which of them begin beside one that fails would depend on time. */
function oneByOne(steps: readonly RandomStep[]): RandomStep[] {
  return steps.map((step) => ({ ...step, max_parallel: 1 }));
}

function scriptOf(
  steps: readonly RandomStep[],
  units: Map<string, { state: string; output?: unknown }>,
): Script {
  const known = new Map(steps.map((step) => [step.id, step]));
  const stepOf = (id: string): RandomStep => known.get(id) as RandomStep;
  return {
    decide: (id) => {
      const { when, does } = stepOf(id);
      if (when === false) {
        units.set(`${id}/0`, { state: 'skipped' }); // as the activity does
        return { type: 'skip' };
      }
      return Array.isArray(does) ? { type: 'go', items: does.length } : { type: 'go' };
    },
    execute: async ({ step_id, item = 0, resumed }) => {
      const { does } = stepOf(step_id);
      if (does === 'pause') {
        const until = new Date(Date.now() + 15).toISOString();
        if (resumed === undefined) return { waiting: { awaiting: 'time', until } };
        units.set(`${step_id}/0`, { state: 'succeeded', output: null });
        return succeeded;
      }
      const { fails, takes } = (item === 0 ? does : (does as readonly Task[])[item - 1]) as Task;
      await sleep(takes * 10);
      units.set(
        `${step_id}/${item}`,
        fails ? { state: 'failed' } : { state: 'succeeded', output: { fails, takes } },
      );
      if (fails) throw ApplicationFailure.nonRetryable('as told', 'capability_failed');
      return succeeded;
    },
  };
}

async function onTemporal(
  runs: ScriptedRuns,
  steps: readonly RandomStep[],
  history_events: number,
): Promise<EndedRun> {
  const units = new Map<string, { state: string; output?: unknown }>();
  const plan = planRun(toPipeline(steps));
  const run = await runs.start(plan, scriptOf(steps, units), { history_events });
  const outcome = await run.ended();
  await runs.replay(run);
  for (const { step_id, item, state } of run.recorded.changes) units.set(`${step_id}/${item}`, { state });
  return { outcome, units };
}

async function mocked(steps: readonly RandomStep[]): Promise<EndedRun> {
  const { outcome, steps: ended } = await runLocally(toPipeline(steps), job, mocks);
  const isWhole = ({ id, item }: { id: string; item: number }): boolean =>
    item === 0 && Array.isArray(steps.find((step) => step.id === id)?.does);
  return {
    outcome,
    units: new Map(
      ended.map((unit) => {
        const { id, item, state, output } = unit;
        return [`${id}/${item}`, output === undefined || isWhole(unit) ? { state } : { state, output }];
      }),
    ),
  };
}

/** The pipelines in batches, each on both drivers. */
async function compare(
  pipelines: readonly RandomStep[][],
  check: (temporal: EndedRun, mock: EndedRun) => void,
  runs = remembering,
): Promise<void> {
  for (let at = 0; at < pipelines.length; at += batch) {
    const some = pipelines.slice(at, at + batch);
    const ended = await Promise.all(
      some.map(
        async (steps, index) =>
          [await onTemporal(runs, steps, index % 2 ? 60 : 4_096), await mocked(steps)] as const,
      ),
    );
    for (const [temporal, mock] of ended) check(temporal, mock);
  }
}

test('a run that nothing stops ends on both with the same states, outputs and steps left out', async () => {
  const pipelines = fc.sample(anySteps(30, { fatal: false }).map(oneByOne), { numRuns, seed });
  await compare(pipelines, (temporal, mock) => expect(temporal).toEqual(mock));
}, 600_000);

test('a run that a failure may stop ends on both with the same outcome', async () => {
  const pipelines = fc.sample(anySteps(30, { fatal: true }), { numRuns, seed });
  await compare(pipelines, (temporal, mock) => expect(temporal.outcome).toBe(mock.outcome));
}, 600_000);

test('a run whose worker is as after a crash at every event of it ends the same', async () => {
  const pipelines = fc.sample(anySteps(30, { fatal: false }).map(oneByOne), {
    numRuns: Math.ceil(numRuns / 4),
    seed: seed + 1,
  });
  await compare(pipelines, (temporal, mock) => expect(temporal).toEqual(mock), forgetful);
}, 600_000);
