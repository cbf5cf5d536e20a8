/** The state of a running local run: the world that it shares with its sub-runs, and its own part. */

import type { WrongAnswers } from '../call/wrong-answer.ts';
import { type CancelSignal, CancelSource, onCancel } from '../cancellation.ts';
import type { EventType } from '../contracts/event.ts';
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Failure, Json, JsonObject, Priority } from '../contracts/primitives.ts';
import type { StepState } from '../contracts/run-step.ts';
import type { CompiledDefinition, CompiledStep } from '../definition/compile.ts';
import type { ExpressionScope } from '../expression/evaluation.ts';
import type { Ladder } from '../ladder/ladder.ts';
import { toNanoUsd } from '../money/nano-usd.ts';
import { hasRoomFor, type Shortage } from '../money/reservation.ts';
import { lowestCeiling } from '../routing/estimate.ts';
import type { MemberOfLine } from '../routing/memory-lines.ts';
import type { DrivenRun, RunPorts } from '../run/drive.ts';
import type { RunPlan } from '../run/plan.ts';
import type { TimeLimit } from '../time-limit.ts';
import type { MockFleet } from './mock-fleet.ts';
import type { EventWait, MockEvents } from './outside/mock-events.ts';
import type { MockReview, MockReviewer } from './outside/mock-reviewer.ts';
import type { VirtualTime } from './virtual-time.ts';

/** The outcome of a run; `waiting`: nothing happens any more, and the run has not ended. */
export type LocalOutcome = 'succeeded' | 'failed' | 'cancelled' | 'waiting' | 'refused';

export interface EndedRun {
  readonly outcome: LocalOutcome;
  readonly error: Failure | null;
  readonly output?: Json;
}

/** State that a run and its sub-runs share. */
export interface World {
  readonly time: VirtualTime;
  readonly fleet: MockFleet;
  readonly reviewer: MockReviewer;
  readonly outside: MockEvents;
  readonly seed: number;
  /** Definitions of sub-pipelines. */
  readonly pipelines: readonly PipelineDefinition[];
  readonly onFault: (error: unknown) => void;
  /** Whether a run should continue from a snapshot, as after a long history. */
  readonly historyPressure: RunPorts['historyPressure'];
  /** Starts the run of a step. */
  readonly startRun: (world: World, order: LocalOrder) => LocalRun;
  /** Runs that were started so far. */
  runs: number;
}

export interface LocalOrder {
  readonly definition: PipelineDefinition;
  readonly job: JsonObject;
  /** Runs above it. */
  readonly depth: number;
  readonly priority: Priority;
  /** Null = none. */
  readonly ceilingUsd: number | null;
  /** The budget of the run whose step started it; null for a top-level run. */
  readonly above: RunBudget | null;
  /** Called once. */
  readonly onEnd: () => void;
  /** Called when the run begins to rest, and when it no longer does. */
  readonly onRest: (run: Pick<LocalRun, 'runId' | 'driven'>) => void;
}

export interface LocalRun extends Pick<LocalOrder, 'definition' | 'depth' | 'priority' | 'onEnd' | 'onRest'> {
  readonly world: World;
  readonly compiled: CompiledDefinition;
  readonly plan: RunPlan;
  readonly runId: string;
  readonly beganAt: number;
  /** The roots `job` and `run` of expressions. */
  readonly scope: Pick<ExpressionScope, 'job' | 'run'>;
  readonly budget: RunBudget;
  readonly budgetWait: BudgetWait;
  /** Cancels every running step. */
  readonly stop: CancelSource;
  /** Cancels the ladders among them. */
  readonly climbing: CancelSource;
  /** By step id, then by item. */
  readonly units: Map<string, Map<number, UnitRecord>>;
  readonly events: LocalEvent[];
  /** Null until it begins. */
  driven: DrivenRun | null;
  /** Null until it begins. */
  limit: TimeLimit | null;
  readonly pauses: LocalPauses;
  /** Null while it is running. */
  ended: EndedRun | null;
}

/** The time that a run was paused, without the current pause, which began at `since`. */
interface LocalPauses {
  since: number | null;
  totalMs: number;
}

/** Steps that wait for budget: one review for all of them. */
interface BudgetWait {
  /** In the order in which they began to wait. */
  readonly units: Set<UnitRecord>;
  /** The open review; null = none. */
  review: MockReview | null;
}

export interface UnitName {
  readonly id: string;
  /** 0 = the step as a whole. */
  readonly item: number;
}

/** A step or an item of it; a server stores this as a row of the database. */
export interface UnitRecord extends UnitName {
  state: StepState;
  output?: Json;
  error?: Failure;
  attempts: number;
  /** Failures of the current input that count against `retry.max`. */
  counted: number;
  /** Wrong answers to the current input; absent: none. */
  wrong?: WrongAnswers | undefined;
  /** Instances that failed the current input, each with its number of counted failures. */
  readonly failedOn: Map<string, number>;
  costNano: bigint;
  startedAt: number | null;
  finishedAt: number | null;
  /** The items of a step with `for_each`. */
  items?: readonly Json[];
  /** When it began to wait for an instance. */
  missingSince?: number;
  /** What is left of its total timeout while it waits for a slot or for its next attempt; absent: all of it. */
  leftMs?: number;
  /** How often its call was made in this time; absent: not yet. */
  rounds?: number;
  /** Its place in the line for a slot. */
  queued?: MemberOfLine;
  /** Cancels its call, or its ladder; absent: it has none. */
  stop?: CancelSource;
  /** A person skipped it while it waited for budget. */
  isSkipped: boolean;
  /** The run that it has started. */
  subRun?: LocalRun;
  /** Its own review as a review step, or the review of its ladder. */
  review?: MockReview;
  /** Its wait for an event. */
  event?: EventWait;
  /** Its position on its ladder. */
  ladder?: ClimbingStep;
  /** Ends the timer of its wait; null when no wait is active. */
  stopListening: (() => void) | null;
  /** A wake came before its wait began. */
  isWoken: boolean;
}

/** A step on its ladder. */
export interface ClimbingStep {
  readonly unit: UnitRecord;
  readonly step: CompiledStep;
  /** Inputs that have failed, the author's own first. */
  readonly failed: [JsonObject, ...JsonObject[]];
  ladder: Ladder;
  /** The level of the last attempt. */
  level: number;
  /** Why it escalated, or opened a review. */
  failure: Failure;
}

/** Times in ms since the run began. */
export interface LocalStep extends UnitName {
  readonly state: StepState;
  readonly output?: Json;
  readonly error?: Failure;
  readonly attempts: number;
  readonly cost_usd: number;
  readonly started_at_ms: number | null;
  readonly finished_at_ms: number | null;
}

export interface LocalEvent {
  readonly seq: number;
  readonly at_ms: number;
  readonly type: EventType;
  readonly step_id?: string;
  readonly item?: number;
  readonly data: Json;
}

/** Cancels a unit alone; it is cancelled with all others, too. */
export function stopOf(unit: UnitRecord, all: CancelSignal): CancelSignal {
  if (unit.stop === undefined || unit.stop.aborted) unit.stop = new CancelSource();
  const own = unit.stop;
  onCancel(all, () => own.abort(all.reason));
  return own;
}

export function stepOf({ compiled }: LocalRun, id: string): CompiledStep {
  return compiled.steps[compiled.indexOf.get(id) ?? -1] as CompiledStep;
}

/** A user has cancelled the run. */
export function isCancelled({ driven }: LocalRun): boolean {
  return driven?.state.phase === 'cancelling';
}

export function pauseRun(run: LocalRun): void {
  run.pauses.since ??= run.world.time.now();
  run.limit?.pause();
  run.driven?.send({ type: 'paused' });
}

export function resumeRun(run: LocalRun): void {
  run.pauses.totalMs = pausedMsOf(run);
  run.pauses.since = null;
  run.driven?.send({ type: 'resumed' });
  run.limit?.resume();
}

export function isPaused({ driven }: LocalRun): boolean {
  return driven?.state.isPaused === true;
}

/** The time that the run was paused so far. */
export function pausedMsOf({ pauses: { since, totalMs }, world }: LocalRun): number {
  return totalMs + (since === null ? 0 : world.time.now() - since);
}

// The budget of a run: each call reserves its maximum cost and settles its actual cost, in its run and in those above
// it.

export interface RunBudget {
  /** Reserves both if there is room for the worst case (B1). @returns the shortage; null = reserved */
  reserve(worst: bigint, risk: bigint): Shortage | null;
  settle(reserved: bigint, amount: bigint): void;
  /** @param ceilingUsd null = none */
  raise(ceilingUsd: number | null): void;
  /** Calls the listener on a raise of the run's own ceiling, or of one above it. */
  onRaise(listener: () => void): void;
  /** The budget that refused last: its own, or that of a run above. */
  scarce(): RunBudget;
  /** The lowest of its own ceiling and those above. */
  ceilingUsd(): number | null;
  spentNano(): bigint;
}

/** @param above budget of the run whose step started it; null = none */
export function createRunBudget(ceilingUsd: number | null, above: RunBudget | null): RunBudget {
  let ceiling = ceilingUsd;
  let spent = 0n;
  let reserved = 0n;
  let isOwnScarce = true;
  const listeners: (() => void)[] = [];
  const budget: RunBudget = {
    reserve: (worst, risk) => {
      const limit = ceiling === null ? null : toNanoUsd(ceiling);
      isOwnScarce = !hasRoomFor({ limit, spent, reserved }, worst);
      if (limit !== null && isOwnScarce) {
        return { scope: 'run', runId: null, limit, spent, reserved, resetsAt: null };
      }
      const refusal = above?.reserve(worst, risk) ?? null;
      if (refusal === null) reserved += worst + risk;
      return refusal;
    },
    settle: (held, amount) => {
      reserved -= held;
      spent += amount;
      above?.settle(held, amount);
    },
    raise: (usd) => {
      ceiling = usd;
      for (const listener of listeners) listener();
    },
    onRaise: (listener) => {
      listeners.push(listener);
      above?.onRaise(listener);
    },
    scarce: () => (isOwnScarce || above === null ? budget : above.scarce()),
    ceilingUsd: () => lowestCeiling(ceiling, above?.ceilingUsd() ?? null),
    spentNano: () => spent,
  };
  return budget;
}
