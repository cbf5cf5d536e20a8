/** What a step asks of the router, whoever makes its call. */
import type { StepDefinition } from '../../../contracts/pipeline.ts';
import type { Priority } from '../../../contracts/primitives.ts';
import type { RouteConstraints } from '../../routing/types.ts';
import { capabilityOf } from '../step-kind.ts';
import type { StepSettings } from './step-settings.ts';

export interface RouteOfRun {
  readonly priority: Priority;
  /** The most that the run may cost, USD; null = no ceiling. */
  readonly ceilingUsd: number | null;
  /** What is left of the step's time. */
  readonly remainingMs: number;
}

export function routeOfStep(
  { capability, capability_version, tags }: StepDefinition,
  settings: StepSettings,
  run: RouteOfRun,
): RouteConstraints {
  return {
    capability: capabilityOf({ capability }),
    versionRange: capability_version ?? null,
    tags: tags ?? [],
    priority: settings.priority ?? run.priority,
    ceilingUsd: settings.ceilingUsd,
    runCeilingUsd: run.ceilingUsd,
    timeoutMs: Math.max(1, Math.min(settings.timeoutMs, run.remainingMs)),
  };
}
