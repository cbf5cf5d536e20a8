/** A step that wants results of equal calls, of a capability that never says that equal calls have equal results. */
import type { PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import { resolveCache } from '../compile/cache-settings.ts';
import type { DefinitionFacts } from './definition-facts.ts';
import type { DefinitionFinding } from './finding.ts';

/** What `defaults` say is meant for the steps that it can be for. */
export function checkCache(
  definition: PipelineDefinition,
  { specsOf }: Pick<DefinitionFacts, 'specsOf'>,
): DefinitionFinding[] {
  return definition.steps.flatMap((step, index) =>
    isInVain(step, specsOf) ? [notDeterministic(step, `/steps/${index}/cache`)] : [],
  );
}

function isInVain(step: StepDefinition, specsOf: DefinitionFacts['specsOf']): boolean {
  if (step.cache === undefined || resolveCache({}, step)?.insists !== false) return false;
  const specs = specsOf?.(step) ?? [];
  return specs.length > 0 && !specs.some(({ isDeterministic }) => isDeterministic);
}

function notDeterministic({ capability }: StepDefinition, pointer: string): DefinitionFinding {
  return {
    severity: 'warning',
    code: 'cache_unused',
    pointer,
    message: `the spec of ${capability} does not say that it is deterministic, so every call is made`,
    suggestion:
      'let the spec say "deterministic": true, or write insist: true where a result of an equal call will do',
  };
}
