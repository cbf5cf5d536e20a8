/**
 * `runLocally`: runs a pipeline without a server, against mocks, in virtual time. The same definition, job, mocks and
 * seed give the same run, event for event.
 *
 * Also compares a local run with the expectation of its mocks file; each difference is one line.
 */
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import { parseDuration } from '../duration.ts';
import { isEqual } from '../expression/compare.ts';
import { fromNanoUsd } from '../money/nano-usd.ts';
import type { HistoryPressure } from '../run/machine-state.ts';
import { ceilingOfRun, priorityOfRun } from '../run/step-rules.ts';
import {
  type LocalEvent,
  type LocalOutcome,
  type LocalRun,
  type LocalStep,
  pauseRun,
  resumeRun,
  type World,
} from './local-run.ts';
import { createMockFleet } from './mock-fleet.ts';
import { type Expectation, type Mocks, showBriefly } from './mocks.ts';
import { createMockEvents } from './outside/mock-events.ts';
import { createMockReviewer } from './outside/mock-reviewer.ts';
import { listSteps, logEvent } from './run-journal.ts';
import { startRun } from './start-run.ts';
import { createVirtualTime, type Settle } from './virtual-time.ts';

interface LocalOptions {
  /** Decides between equally good instances. Default 0. */
  readonly seed?: number;
  /** Definitions of sub-pipelines; `latest` is the last of its name. */
  readonly pipelines?: readonly PipelineDefinition[];
  /** Whether the run should continue from a snapshot when it can, asked at every event. Default: never. */
  readonly historyPressure?: () => HistoryPressure;
  /** The `settle` of its virtual time; default: Node's. */
  readonly settle?: Settle;
}

export interface LocalResult {
  readonly outcome: LocalOutcome;
  readonly error: Failure | null;
  readonly output: Json | null;
  /** In the order of the definition, items after their step. */
  readonly steps: readonly LocalStep[];
  readonly events: readonly LocalEvent[];
  /** Received calls by capability, including those of sub-runs. */
  readonly calls: Readonly<Record<string, number>>;
  readonly cost_usd: number;
  readonly duration_ms: number;
}

const defaultClock = '2026-01-01T00:00:00Z';

/**
 * @param definition without a finding of severity `error`
 * @throws MockFault when the mocks lack something that the run needs
 */
// biome-ignore lint/complexity/useMaxParams: every mock run has the first three, few have options
export async function runLocally(
  definition: PipelineDefinition,
  job: JsonObject,
  mocks: Mocks = {},
  options: LocalOptions = {},
): Promise<LocalResult> {
  const began = Date.parse(mocks.clock ?? defaultClock);
  const time = createVirtualTime(began, options.settle);
  const faults: unknown[] = [];
  const world = createWorld(mocks, options, { time, onFault: (error) => faults.push(error) });
  const { priority, budget_ceiling_usd } = mocks.run ?? {};
  const run = startRun(world, {
    definition,
    job,
    depth: 0,
    above: null,
    onEnd: () => undefined,
    onRest: () => undefined,
    priority: priorityOfRun(definition, priority),
    ceilingUsd: ceilingOfRun(definition, budget_ceiling_usd),
  });
  control(run, mocks);
  await time.pass(() => run.ended !== null || faults.length > 0);
  if (faults.length > 0) throw faults[0];
  const { outcome, error, output = null } = run.ended ?? { outcome: 'waiting' as const, error: null };
  return {
    outcome,
    error,
    output,
    steps: listSteps(run),
    events: run.events,
    calls: world.fleet.calls,
    cost_usd: fromNanoUsd(run.budget.spentNano()),
    duration_ms: time.now() - began,
  };
}

function createWorld(
  mocks: Mocks,
  { seed = 0, pipelines = [], historyPressure = () => 'none' }: LocalOptions,
  { time, onFault }: Pick<World, 'time' | 'onFault'>,
): World {
  const fleet = createMockFleet(mocks.capabilities, time);
  const reviewer = createMockReviewer(mocks, time);
  return {
    time,
    fleet,
    reviewer,
    outside: createMockEvents(mocks, time),
    seed,
    pipelines,
    onFault,
    historyPressure,
    startRun,
    runs: 0,
  };
}

/** Applies the users' commands to the run at their times. */
function control(run: LocalRun, { control: entries = [] }: Mocks): void {
  const { time } = run.world;
  for (const { at, action, budget_ceiling_usd: usd } of entries) {
    const budget_ceiling_usd = usd ?? null;
    time.at(run.beganAt + parseDuration(at), () => {
      switch (action) {
        case 'cancel':
          return run.driven?.send({ type: 'cancel_requested' });
        case 'pause':
          logEvent(run, { type: 'run.paused' });
          return pauseRun(run);
        case 'resume':
          logEvent(run, { type: 'run.resumed' });
          return resumeRun(run);
        case 'raise':
          logEvent(run, { type: 'run.budget_raised', data: { budget_ceiling_usd } });
          return run.budget.raise(budget_ceiling_usd);
      }
    });
  }
}

export interface Difference {
  /** Path in the mocks file's form: `steps.join.state`. */
  readonly at: string;
  readonly expected: string;
  readonly actual: string;
}

/** @returns empty when everything is as expected */
export function findDifferences(expected: Expectation, result: LocalResult): Difference[] {
  return [
    ...compare('outcome', expected.outcome, result.outcome),
    ...compare('error', expected.error, result.error?.code ?? null),
    ...compare('output', expected.output, result.output),
    ...Object.entries(expected.steps ?? {}).flatMap(([id, step]) => compareStep(id, step, result.steps)),
    ...Object.entries(expected.calls ?? {}).flatMap(([name, count]) =>
      compare(`calls.${name}`, count, result.calls[name] ?? 0),
    ),
  ];
}

type ExpectedStep = NonNullable<Expectation['steps']>[string];

function compareStep(id: string, expected: ExpectedStep, steps: readonly LocalStep[]): Difference[] {
  const at = `steps.${id}`;
  const whole = steps.find((step) => step.id === id && step.item === 0);
  if (whole === undefined) return [{ at, expected: 'a step', actual: 'no such step' }];
  if (typeof expected === 'string') return compare(at, expected, whole.state);
  const items = steps.filter((step) => step.id === id && step.item > 0);
  return [
    ...compare(`${at}.state`, expected.state, whole.state),
    ...compare(`${at}.error`, expected.error, whole.error?.code ?? null),
    ...compare(`${at}.output`, expected.output, whole.output ?? null),
    ...compare(`${at}.attempts`, expected.attempts, whole.attempts),
    ...compare(
      `${at}.items`,
      expected.items,
      items.map(({ state }) => state),
    ),
  ];
}

function compare(at: string, expected: Json | undefined, actual: Json): Difference[] {
  return expected === undefined || isEqual(expected, actual)
    ? []
    : [{ at, expected: showBriefly(expected), actual: showBriefly(actual) }];
}
