/**
 * Everything that can be said about a definition of sound shape without a database: all findings at
 * once, each with a JSON Pointer. No finding of severity `error` means that `compileDefinition` and a
 * run accept it.
 */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { createNameSuggester } from '../nearest-name.ts';
import { checkCapabilities } from './check-capabilities.ts';
import { checkCycles } from './check-cycles.ts';
import { checkExpressions } from './check-expressions.ts';
import { checkSettings } from './check-settings.ts';
import { checkStepNames } from './check-step-names.ts';
import { readTemplates } from './definition-templates.ts';
import type { DefinitionFinding } from './finding.ts';

export interface CheckOptions {
  /** Names that are registered now; null skips the check. */
  readonly knownCapabilities: ReadonlySet<string> | null;
  /** An unregistered capability is an error instead of a warning. */
  readonly strict: boolean;
}

export const checkDefinition = (
  definition: PipelineDefinition,
  options: CheckOptions,
): DefinitionFinding[] => {
  const templates = readTemplates(definition);
  const suggestStep = createNameSuggester(definition.steps.map(({ id }) => id));
  return [
    ...checkStepNames(definition, suggestStep),
    ...checkExpressions(definition, templates, suggestStep),
    ...checkCycles(definition, templates),
    ...checkSettings(definition),
    ...checkCapabilities(definition, options),
  ];
};
