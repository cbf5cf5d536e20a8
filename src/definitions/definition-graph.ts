import type { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Validation } from '../contracts/pipeline-answers.ts';
import type { AnalysedDefinition } from '../core/definition/compile.ts';
import { kindFieldsOf } from '../core/definition/step-settings.ts';

/** Steps and edges, for drawing. */
export function showGraph(
  definition: PipelineDefinition,
  { graph: { predecessors } }: AnalysedDefinition,
): NonNullable<Validation['graph']> {
  const ids = definition.steps.map(({ id }) => id);
  return {
    steps: definition.steps.map((step) => ({ id: step.id, ...kindFieldsOf(step) })),
    edges: ids.flatMap((to, index) =>
      (predecessors[index] ?? []).map((before) => ({ from: ids[before] ?? '', to })),
    ),
  };
}
