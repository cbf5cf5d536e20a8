/**
 * Random pipelines with conditions, rules, items, waits, failures and retries, with a queue and without, driven by the
 * workflow on a real Temporal and by the mock run in virtual time: they end equal, step by step and item by item, also
 * across histories, nothing is called more often than it has to be, and every history of the workflow replays.
 * The long form: `RUNS=50`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { runLocally } from '@capstan/core/mock-run/run-locally';
import { planRun } from '@capstan/core/run/plan';
import { ApplicationFailure } from '@temporalio/common';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  anySteps,
  job,
  mocksOf,
  type RandomStep,
  shortRoutes,
  stumblesAtFirst,
  type Task,
  toPipeline,
} from '../../packages/core/test/mock-run/any-pipeline.ts';
import type { InlineEnd } from '../../src/activities/step-activities.ts';
import { isLong } from '../support/long.ts';
import { runs, seed } from '../support/runs.ts';
import {
  type Script,
  type ScriptedBatchEnd,
  type ScriptedRun,
  type ScriptedRuns,
  startScriptedRuns,
  succeeded,
} from '../support/scripted-runs.ts';

const numRuns = runs(isLong ? 6 : 4);
/** As many at once as the workers of one process take well. */
const batch = 12;

let remembering: ScriptedRuns;
let forgetful: ScriptedRuns;
/** Of the running test. */
const toReplay: ScriptedRun[] = [];
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

type Units = Map<string, { state: string; output?: unknown }>;

interface Call {
  readonly step_id: string;
  readonly item?: number;
}

function nameOf({ step_id, item = 0 }: Call): string {
  return `${step_id}/${item}`;
}

/** So many units of a batch are begun before it reports. */
const mostBegun = 5;
/** A call that takes so long continues when its batch reports. */
const longTakes = 3;

/** The calls of a run, wherever they are made. */
class ScriptedCalls {
  /** How often each unit was called. */
  readonly sent = new Map<string, number>();
  readonly #units: Units;
  readonly #steps: ReadonlyMap<string, RandomStep>;
  /** What a batch has begun: how it ends. */
  readonly #begun = new Map<string, Promise<boolean | null>>();

  constructor(steps: readonly RandomStep[], units: Units) {
    this.#steps = new Map(steps.map((step) => [step.id, step]));
    this.#units = units;
  }

  stepOf(id: string): RandomStep {
    return this.#steps.get(id) as RandomStep;
  }

  /** From the queue: calls once, or takes part in the call that a batch has begun. @returns whether it has succeeded; null = it stumbled */
  make(call: Call & { readonly again?: true }): Promise<boolean | null> {
    const name = nameOf(call);
    const begun = call.again === true ? this.#begun.get(name) : undefined;
    this.#begun.delete(name);
    return begun ?? this.#send(call);
  }

  /** Begins it in a batch, which waits for it unless it takes long. A begun unit is not begun again. */
  async begin(call: Call): Promise<InlineEnd> {
    const name = nameOf(call);
    if (this.sent.has(name)) return 'again';
    const end = this.#send(call);
    this.#begun.set(name, end);
    return this.#taskOf(call).takes < longTakes && (await end) === true ? succeeded : 'again';
  }

  #taskOf({ step_id, item = 0 }: Call): Task {
    const { does } = this.stepOf(step_id);
    return (item === 0 ? does : (does as readonly Task[])[item - 1]) as Task;
  }

  async #send(call: Call): Promise<boolean | null> {
    const name = nameOf(call);
    const times = (this.sent.get(name) ?? 0) + 1;
    this.sent.set(name, times);
    const { fails, takes } = this.#taskOf(call);
    await sleep(takes * 10);
    if (times === 1 && stumblesAtFirst(this.stepOf(call.step_id))) return null;
    this.#units.set(name, fails ? { state: 'failed' } : { state: 'succeeded', output: { fails, takes } });
    return !fails;
  }
}

/** Some of a batch succeed, some continue, and some are not begun. */
async function executeBatch(
  calls: ScriptedCalls,
  units: readonly (Call & { readonly after?: readonly number[] })[],
): Promise<ScriptedBatchEnd> {
  const ends: Promise<InlineEnd>[] = [];
  let begun = 0;
  const begin = async (unit: (typeof units)[number]): Promise<InlineEnd> => {
    const before = await Promise.all((unit.after ?? []).map((at) => ends[at]));
    if (begun === mostBegun || before.some((end) => typeof end === 'string')) return 'left';
    begun += 1;
    return calls.begin(unit);
  };
  for (const unit of units) ends.push(begin(unit));
  return { ends: await Promise.all(ends), took_ms: 60 };
}

function scriptOf(calls: ScriptedCalls, units: Units): Script {
  return {
    decide: (id) => {
      const { when, does } = calls.stepOf(id);
      if (when === false) {
        units.set(`${id}/0`, { state: 'skipped' }); // as the activity does
        return { type: 'skip' };
      }
      return Array.isArray(does) ? { type: 'go', items: does.length } : { type: 'go' };
    },
    executeInline: ({ units: batched }) => executeBatch(calls, batched),
    execute: async (call) => {
      const { step_id, resumed } = call;
      if (calls.stepOf(step_id).does === 'pause') {
        const until = new Date(Date.now() + 15).toISOString();
        if (resumed === undefined) return { waiting: { awaiting: 'time', until } };
        units.set(`${step_id}/0`, { state: 'succeeded', output: null });
        return succeeded;
      }
      const hasSucceeded = await calls.make(call);
      if (hasSucceeded === null) {
        throw ApplicationFailure.create({ message: 'stumbled', nextRetryDelay: 10 });
      }
      if (!hasSucceeded) throw ApplicationFailure.nonRetryable('as told', 'capability_failed');
      return succeeded;
    },
  };
}

async function onTemporal(
  runs: ScriptedRuns,
  steps: readonly RandomStep[],
  history_events: number,
): Promise<EndedRun> {
  const units: Units = new Map();
  const calls = new ScriptedCalls(steps, units);
  const plan = planRun(toPipeline(steps), { dispatch: shortRoutes });
  // A worker that forgets its runs now and then loses its reports: it is asked again soon.
  const way = { workflowTaskTimeout: runs === forgetful ? '1 second' : '10 seconds' } as const;
  const run = await runs.start(plan, scriptOf(calls, units), { history_events }, way);
  const outcome = await run.ended();
  toReplay.push(run);
  const stumbling = new Set(steps.filter(stumblesAtFirst).map(({ id }) => `${id}/0`));
  expect([...calls.sent].filter(([name, times]) => times > (stumbling.has(name) ? 2 : 1))).toEqual([]);
  for (const { step_id, item, state } of run.recorded.changes) units.set(`${step_id}/${item}`, { state });
  return { outcome, units };
}

async function mocked(steps: readonly RandomStep[]): Promise<EndedRun> {
  const { outcome, steps: ended } = await runLocally(toPipeline(steps), job, mocksOf(steps));
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
  await runs.replay(...toReplay.splice(0));
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
