/**
 * Which steps a run may leave without an output although it goes on, and why; and which steps start only after all
 * that they depend on have one.
 */
import type { PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import type { Graph } from '../../dag/graph.ts';

export interface Lack {
  readonly reason: string;
  /** By what the step itself says, not because of another one. */
  readonly isOwn: boolean;
}

/** By step index: why it may have no output; undefined = it has one, or the run fails. */
export type StepLacks = readonly (Lack | undefined)[];

export function findLacks({ steps }: PipelineDefinition, { order, predecessors }: Graph): StepLacks {
  const lacks: (Lack | undefined)[] = steps.map(() => undefined);
  for (const index of order) {
    const step = steps[index];
    if (step === undefined) continue;
    const before = predecessors[index] ?? [];
    lacks[index] = whySkipped(step, before, lacks) ?? whyFailed(step);
  }
  return lacks;
}

function whySkipped(step: StepDefinition, before: readonly number[], lacks: StepLacks): Lack | undefined {
  const { id, when, run_if = 'all_succeeded', optional, review } = step;
  const reason = `${id} may be skipped`;
  if (when !== undefined || optional === true || review?.on_timeout === 'skip')
    return { reason, isOwn: true };
  const lacking = before.filter((index) => lacks[index] !== undefined);
  const mayBeSkipped =
    run_if === 'any_failed' ||
    (run_if === 'all_succeeded' && lacking.length > 0) ||
    (run_if === 'any_succeeded' && lacking.length === before.length);
  return mayBeSkipped ? { reason, isOwn: run_if === 'any_failed' } : undefined;
}

function whyFailed({ id, on_error }: StepDefinition): Lack | undefined {
  return on_error === 'continue' ? { reason: `${id} may fail`, isOwn: true } : undefined;
}

/** Whether a step that starts has an output of each step it depends on. */
export function needsAll({ run_if }: StepDefinition, dependencies: number): boolean {
  return (
    run_if === undefined || run_if === 'all_succeeded' || (run_if === 'any_succeeded' && dependencies === 1)
  );
}
