/** Checks steps with `first`, and steps whose items are called off: whether enough can succeed, and what cannot end early. */
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import type { Graph } from '../../graph/dag.ts';
import { findRaceRegion, successorsOf } from '../../graph/races.ts';
import type { DefinitionFinding } from './finding.ts';

export function checkRaces(definition: PipelineDefinition, graph: Graph): DefinitionFinding[] {
  const { steps } = definition;
  const isRacing = steps.some(({ first }) => first !== undefined);
  const successors = isRacing
    ? successorsOf(graph.predecessors.map((dependencies) => ({ dependencies })))
    : [];
  return steps.flatMap((step, index): DefinitionFinding[] => {
    const pointer = `/steps/${index}`;
    const ofItems = step.for_each?.enough === undefined ? [] : checkInline(step, pointer);
    if (step.first === undefined) return ofItems;
    return [
      ...ofItems,
      ...checkFirst(step, pointer),
      ...checkRegion({ definition, graph, successors }, index),
    ];
  });
}

function checkFirst(
  { first = 1, run_if, depends_on = [] }: StepDefinition,
  pointer: string,
): DefinitionFinding[] {
  if (run_if !== undefined) {
    const message = 'a step has first or run_if, not both: first starts before all dependencies have ended';
    return [{ severity: 'error', code: 'race_conflict', pointer: `${pointer}/first`, message }];
  }
  if (first <= depends_on.length) return [];
  const message = `${first} steps of depends_on are needed, and there are ${depends_on.length}`;
  return [{ severity: 'error', code: 'race_unreachable', pointer: `${pointer}/first`, message }];
}

interface CheckedRaces {
  readonly definition: PipelineDefinition;
  readonly graph: Graph;
  readonly successors: readonly (readonly number[])[];
}

function checkRegion({ definition, graph, successors }: CheckedRaces, join: number): DefinitionFinding[] {
  const { steps } = definition;
  const { first = 1, depends_on = [] } = steps[join] as StepDefinition;
  const named = new Set(depends_on);
  const of = steps.flatMap(({ id }, index) => (named.has(id) && index !== join ? [index] : []));
  const dependenciesOf = (step: number) => graph.predecessors[step] ?? [];
  const region = findRaceRegion({ successors, dependenciesOf }, join, { count: first, of });
  const free = new Set(region);
  const shared = of.filter((step) => !free.has(step));
  const idOf = (step: number | undefined) => steps[step ?? -1]?.id;
  return [
    ...shared.map((step): DefinitionFinding => {
      const other = idOf(successors[step]?.find((after) => after !== join && !free.has(after)));
      const message = `${idOf(step)} is never cancelled by this race, and its failure fails the run: ${other} needs it too`;
      return { severity: 'note', code: 'race_shared', pointer: `/steps/${join}/first`, message };
    }),
    ...region.flatMap((step) => checkInline(steps[step] as StepDefinition, `/steps/${step}`)),
  ];
}

function checkInline({ dispatch }: StepDefinition, pointer: string): DefinitionFinding[] {
  if (dispatch !== 'inline') return [];
  const message = 'a step that may be called off is queued; use dispatch: queued';
  return [{ severity: 'error', code: 'dispatch_conflict', pointer: `${pointer}/dispatch`, message }];
}
