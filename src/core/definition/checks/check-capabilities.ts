import type { PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import { parseDuration } from '../../duration.ts';
import { createNameSuggester } from '../../nearest-name.ts';
import type { DefinitionFacts } from './definition-facts.ts';
import type { DefinitionFinding } from './finding.ts';

/** Instances come and go, so an unregistered capability is a warning unless `strict`. */
export function checkCapabilities(
  definition: PipelineDefinition,
  { knownCapabilities, strict }: Pick<DefinitionFacts, 'knownCapabilities' | 'strict'>,
): DefinitionFinding[] {
  return knownCapabilities === null
    ? []
    : findUnknown(definition.steps, knownCapabilities).map((finding) => ({
        severity: strict ? 'error' : 'warning',
        ...finding,
      }));
}

/** What stops a run of a sound definition from starting now: calls of what nobody offers and that wait for nobody. */
export function checkRunnable(
  { steps }: PipelineDefinition,
  knownCapabilities: ReadonlySet<string>,
): DefinitionFinding[] {
  return findUnknown(
    steps,
    knownCapabilities,
    ({ wait_for_capability = '0s' }) => parseDuration(wait_for_capability) === 0,
  ).map((finding) => ({ severity: 'error', ...finding }));
}

function findUnknown(
  steps: readonly StepDefinition[],
  known: ReadonlySet<string>,
  isMeant: (step: StepDefinition) => boolean = () => true,
): Omit<DefinitionFinding, 'severity'>[] {
  const suggest = createNameSuggester(known);
  return steps.flatMap((step, index): Omit<DefinitionFinding, 'severity'>[] => {
    const { capability } = step;
    if (capability === undefined || known.has(capability) || !isMeant(step)) return [];
    return [
      {
        code: 'capability_unknown',
        pointer: `/steps/${index}/capability`,
        message: `no instance of ${capability} is registered`,
        suggestion: suggest(capability),
      },
    ];
  });
}
