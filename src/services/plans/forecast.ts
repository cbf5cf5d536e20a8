/** What a plan is made of: of a run, of its steps, and of one execution of a step. */
import type { Candidate } from '../../contracts/decision.ts';
import type { Finding, PipelineDefinition } from '../../contracts/pipeline.ts';
import type { PlannedStepView } from '../../contracts/plan.ts';
import type { JsonObject, Priority } from '../../contracts/primitives.ts';
import type { CriticalPath } from '../../core/dag/critical-path.ts';
import type { CompiledStep } from '../../core/definition/compile/compile-definition.ts';
import type { FindKept } from '../cache/find-kept.ts';
import type { KnownDefinition } from '../runs/known-definitions.ts';
import type { CostRange } from './cost-range.ts';
import type { ForecastCall } from './forecast-call.ts';

/** A run to be planned. */
export interface RunTask {
  readonly definition: PipelineDefinition;
  /** Null = not known. */
  readonly job: JsonObject | null;
  readonly jobId: string;
  readonly priority: Priority;
  readonly ceilingUsd: number | null;
  /** Runs above it. */
  readonly depth: number;
}

/** Where nobody is called, `chosen` is null and there are no candidates. */
type Shown = Pick<PlannedStepView, 'chosen' | 'reason'> & { readonly candidates: readonly Candidate[] };

/** One execution: of a step, or of one of its items. */
export interface UnitForecast extends Shown {
  readonly cost: CostRange;
  readonly durationMs: number;
  /** Calls that would take the result of an equal one; absent for none. */
  readonly cached?: number;
  readonly findings: readonly Finding[];
}

export interface StepForecast extends UnitForecast {
  /** Absent without `for_each`; null = only the run will know. */
  readonly items?: number | null;
}

export interface RunForecast {
  readonly steps: readonly (StepForecast & Pick<PlannedStepView, 'id' | 'happens'>)[];
  readonly cost: CostRange;
  readonly path: CriticalPath;
  readonly findings: readonly Finding[];
}

/** What the forecast of one plan needs; the runs that its steps start share it. */
export interface PlanContext {
  readonly forecastCall: ForecastCall;
  readonly findKept: FindKept;
  readonly projectId: string;
  readonly forecastRun: (task: RunTask) => Promise<RunForecast>;
  /** Names of capabilities that are registered. */
  readonly registered: ReadonlySet<string>;
  /** By `name@version` or `name@alias`. @throws AppError `not_found`, `definition_invalid` */
  readonly findPipeline: (reference: string) => Promise<KnownDefinition>;
  /** Grows: capabilities that may be called and that nobody has registered. */
  readonly missing: Set<string>;
  /** Inputs of items, and steps of runs that steps start, that may still be looked at one by one. */
  readonly inputBudget: { left: number; isShort: boolean };
  /** Lets others work now and then. */
  readonly yieldToEventLoop: () => Promise<void>;
}

export interface PlannedUnit {
  readonly step: CompiledStep;
  /** JSON Pointer of the step in its definition. */
  readonly pointer: string;
  /** Null = only the run will know. */
  readonly input: JsonObject | null;
}
