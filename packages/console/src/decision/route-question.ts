/** The router's question for a waiting step, by the same rule as in the worker. */
import type { OnBudget } from '@capstan/core/contracts/decision';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Json } from '@capstan/core/contracts/primitives';
import type { Run } from '@capstan/core/contracts/run';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { resolveStepSettings, routeOfStep } from '@capstan/core/definition/step-settings';

export interface RouteQuestion {
  readonly capability: string;
  readonly input?: Json;
  readonly priority?: string;
  readonly budget_ceiling_usd?: number;
  readonly version?: string;
  readonly tags?: readonly string[];
  readonly timeout_ms?: number;
  readonly on_budget?: OnBudget;
}

type SpendingRun = Pick<Run, 'priority' | 'budget_ceiling_usd' | 'cost_usd' | 'reserved_usd'> & {
  /** The choice of its project; null: none, or it is unknown. */
  readonly on_budget: OnBudget | null;
};
export type AskingStep = Pick<StepDetail, 'id' | 'state' | 'awaiting' | 'error' | 'input' | 'revisions'>;

/** The remaining money, USD; null = no ceiling. */
function leftOf({ budget_ceiling_usd, cost_usd, reserved_usd }: SpendingRun): number | null {
  return budget_ceiling_usd === null ? null : Math.max(0, budget_ceiling_usd - cost_usd - reserved_usd);
}

/** No instance takes it: it waits for an instance or budget, or is retried until there is one. */
function wantsInstance({ state, awaiting, error }: AskingStep): boolean {
  if (state === 'waiting') return awaiting === 'capability' || awaiting === 'budget';
  return state === 'retrying' && (error?.code === 'no_instance' || error?.code === 'budget_reserved');
}

/** Null when its wait does not depend on the router. */
export function routeQuestionOf(
  run: SpendingRun,
  definition: PipelineDefinition,
  step: AskingStep,
): RouteQuestion | null {
  const own = definition.steps.find(({ id }) => id === step.id);
  if (!wantsInstance(step) || own?.capability === undefined) return null;
  const route = routeOfStep(own, resolveStepSettings(definition, own), {
    priority: run.priority,
    ceilingUsd: leftOf(run),
    remainingMs: Number.POSITIVE_INFINITY,
    onBudget: run.on_budget,
  });
  const ceilings = [route.ceilingUsd, route.runCeilingUsd ?? null].filter((ceiling) => ceiling !== null);
  const input = step.revisions?.at(-1)?.input ?? step.input;
  return {
    capability: route.capability,
    priority: route.priority,
    timeout_ms: route.timeoutMs,
    tags: [...route.tags],
    ...(route.onBudget === undefined ? {} : { on_budget: route.onBudget }),
    ...(input === undefined ? {} : { input }),
    ...(route.versionRange === null ? {} : { version: route.versionRange }),
    ...(ceilings.length === 0 ? {} : { budget_ceiling_usd: Math.min(...ceilings) }),
  };
}
