import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { createNameSuggester } from '../nearest-name.ts';
import type { DefinitionFinding } from './finding.ts';

export interface CapabilityOptions {
  /** Names that are registered now; null skips the check. */
  readonly knownCapabilities: ReadonlySet<string> | null;
  /** An unregistered capability is an error instead of a warning. */
  readonly strict: boolean;
}

/** Instances come and go, so an unregistered capability is a warning unless `strict`. */
export const checkCapabilities = (
  { steps }: PipelineDefinition,
  { knownCapabilities, strict }: CapabilityOptions,
): DefinitionFinding[] => {
  if (knownCapabilities === null) return [];
  const suggest = createNameSuggester(knownCapabilities);
  return steps.flatMap(({ capability }, index): DefinitionFinding[] =>
    knownCapabilities.has(capability)
      ? []
      : [
          {
            severity: strict ? 'error' : 'warning',
            code: 'capability_unknown',
            pointer: `/steps/${index}/capability`,
            message: `no instance of ${capability} is registered`,
            suggestion: suggest(capability),
          },
        ],
  );
};
