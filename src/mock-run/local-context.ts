/** What the parts of a local run share; the world is shared with its sub-runs. */
import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Failure, Json, JsonObject, Priority } from '../contracts/primitives.ts';
import type { CancelSource } from '../core/cancellation.ts';
import type { CompiledDefinition, CompiledStep } from '../core/definition/compile/compile-definition.ts';
import type { MockFleet } from './mock-fleet.ts';
import type { MockReviewer } from './mock-reviewer.ts';
import type { RunBudget } from './run-budget.ts';
import type { RunJournal, UnitName } from './run-journal.ts';
import type { RunScope } from './step-scope.ts';
import type { VirtualTime } from './virtual-time.ts';

/** How a run ended; `waiting`: nothing happens any more, and it has not ended. */
export type LocalOutcome = 'succeeded' | 'failed' | 'cancelled' | 'waiting' | 'refused';

export interface SubRun {
  readonly runId: string;
  /** Null while it is under way. */
  end(): Pick<EndedRun, 'outcome' | 'error' | 'output'> | null;
  /** What it has cost so far, with the runs below it. */
  spentNano(): bigint;
  cancel(): void;
}

export interface SubRunOrder {
  readonly definition: PipelineDefinition;
  readonly job: JsonObject;
  readonly depth: number;
  readonly priority: Priority;
  /** Null = only its own definition's. */
  readonly ceilingUsd: number | null;
  /** The budget of the run whose step started it; null = none did. */
  readonly above: RunBudget | null;
  /** Told when it has ended. */
  readonly onEnd: () => void;
}

export interface EndedRun {
  readonly outcome: LocalOutcome;
  readonly error: Failure | null;
  readonly output?: Json;
}

export interface MockWorld {
  readonly time: VirtualTime;
  readonly fleet: MockFleet;
  readonly seed: number;
  /** @returns undefined when there is no such pipeline */
  findPipeline(reference: string): PipelineDefinition | undefined;
  startSubRun(order: SubRunOrder): SubRun;
}

export interface LocalContext {
  readonly world: MockWorld;
  readonly definition: PipelineDefinition;
  readonly compiled: CompiledDefinition;
  readonly runId: string;
  readonly priority: Priority;
  /** 0 for the run itself. */
  readonly depth: number;
  readonly scope: RunScope;
  readonly journal: RunJournal;
  readonly budget: RunBudget;
  readonly reviewer: MockReviewer;
  /** Stops every step that is under way. */
  readonly stop: CancelSource;
  /** Stops the ladders among them. */
  readonly climbing: CancelSource;
  /** Whether somebody has cancelled the run. */
  isCancelled(): boolean;
  /** What the unit waits for may be there. */
  wake(unit: UnitName): void;
  cancelRun(): void;
}

export function stepOf({ definition, compiled }: LocalContext, id: string): CompiledStep {
  return compiled.steps[definition.steps.findIndex((step) => step.id === id)] as CompiledStep;
}
