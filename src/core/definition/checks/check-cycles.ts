import type { PipelineDefinition } from '../../../contracts/pipeline.ts';
import { findCycles } from '../../dag/cycles.ts';
import type { Graph } from '../../dag/graph.ts';
import type { DefinitionFinding } from './finding.ts';

/** Steps that wait for one another, by `depends_on` or by what their expressions mention. */
export function checkCycles({ steps }: PipelineDefinition, graph: Graph): DefinitionFinding[] {
  return findCycles(graph).map((cycle) => {
    const ids = cycle.map((index) => steps[index]?.id ?? '');
    const message = `each of these steps waits for the next: ${formatCycle(ids)}`;
    return { severity: 'error', code: 'cycle', pointer: `/steps/${cycle[0]}`, message };
  });
}

const shownAtEachEnd = 20;

function formatCycle(ids: readonly string[]): string {
  const path = [...ids, ids[0]];
  const hidden = path.length - 2 * shownAtEachEnd;
  const shown =
    hidden > 1
      ? [...path.slice(0, shownAtEachEnd), `(${hidden} more)`, ...path.slice(-shownAtEachEnd)]
      : path;
  return shown.join(' -> ');
}
