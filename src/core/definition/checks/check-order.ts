/** What the edges between steps say: how many there are, and whether conditions on them can ever hold. */
import type { PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import type { Graph } from '../../dag/graph.ts';
import type { DefinitionFinding } from './finding.ts';

const edgesPerDefinition = 50_000;

export function checkOrder(
  { steps }: PipelineDefinition,
  { predecessors }: Pick<Graph, 'predecessors'>,
): DefinitionFinding[] {
  return [
    ...checkCount(predecessors.reduce((sum, before) => sum + before.length, 0)),
    ...steps.flatMap((step, index) =>
      checkRunIf(
        step,
        (predecessors[index] ?? []).flatMap((before) => steps[before] ?? []),
        `/steps/${index}/run_if`,
      ),
    ),
  ];
}

function checkCount(edges: number): DefinitionFinding[] {
  if (edges <= edgesPerDefinition) return [];
  const message = `the steps depend on each other ${edges} times, at most ${edgesPerDefinition} are allowed`;
  return [{ severity: 'error', code: 'edges_limit', pointer: '/steps', message }];
}

function checkRunIf(
  { run_if }: StepDefinition,
  dependencies: readonly StepDefinition[],
  pointer: string,
): DefinitionFinding[] {
  if (run_if !== 'any_succeeded' && run_if !== 'any_failed') return [];
  if (dependencies.length === 0) {
    const message = `${run_if} asks about the steps that this one depends on, but there are none`;
    return [{ severity: 'error', code: 'run_if_unused', pointer, message }];
  }
  if (run_if === 'any_succeeded' || dependencies.some(({ on_error }) => on_error === 'continue')) return [];
  const message = 'it never runs: when a step fails the run fails, unless that step says on_error: continue';
  return [{ severity: 'warning', code: 'step_never_runs', pointer, message }];
}
