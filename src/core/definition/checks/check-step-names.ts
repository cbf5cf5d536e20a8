import type { PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import { isForbiddenName } from '../../forbidden-names.ts';
import type { SuggestName } from '../../nearest-name.ts';
import type { DefinitionFinding } from './finding.ts';

/** Names of the pipeline and its steps, and the names in `depends_on`. */
export function checkStepNames(
  { pipeline, steps }: PipelineDefinition,
  suggestStep: SuggestName,
): DefinitionFinding[] {
  const firstOf = new Map<string, number>();
  for (const [index, { id }] of steps.entries()) if (!firstOf.has(id)) firstOf.set(id, index);
  return [
    ...checkForbidden(pipeline, '/pipeline'),
    ...steps.flatMap((step, index) => [
      ...checkForbidden(step.id, `/steps/${index}/id`),
      ...checkDuplicate(step.id, index, firstOf),
      ...checkDependencies(step, index, firstOf, suggestStep),
    ]),
  ];
}

function checkForbidden(name: string, pointer: string): DefinitionFinding[] {
  return isForbiddenName(name)
    ? [{ severity: 'error', code: 'name_forbidden', pointer, message: `the name ${name} is not allowed` }]
    : [];
}

function checkDuplicate(
  id: string,
  index: number,
  firstOf: ReadonlyMap<string, number>,
): DefinitionFinding[] {
  const first = firstOf.get(id);
  if (first === undefined || first === index) return [];
  const message = `the id ${id} is taken by step ${first + 1}; ids are unique within the pipeline`;
  return [{ severity: 'error', code: 'step_duplicate', pointer: `/steps/${index}/id`, message }];
}

function checkDependencies(
  { id, depends_on = [] }: StepDefinition,
  index: number,
  firstOf: ReadonlyMap<string, number>,
  suggestStep: SuggestName,
): DefinitionFinding[] {
  return depends_on.flatMap((dependency, position): DefinitionFinding[] => {
    const pointer = `/steps/${index}/depends_on/${position}`;
    if (dependency === id) {
      const message = `the step ${id} depends on itself`;
      return [{ severity: 'error', code: 'step_self_dependency', pointer, message }];
    }
    if (firstOf.has(dependency)) return [];
    const message = `there is no step ${dependency}`;
    return [
      { severity: 'error', code: 'step_unknown', pointer, message, suggestion: suggestStep(dependency) },
    ];
  });
}
