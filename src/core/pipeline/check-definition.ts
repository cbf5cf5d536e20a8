/**
 * Everything that can be said about a definition of sound shape without a database: all findings at
 * once, each with a JSON Pointer. No finding of severity `error` means that `compileDefinition` and a
 * run accept it.
 */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { createNameSuggester } from '../nearest-name.ts';
import { type CapabilityOptions, checkCapabilities } from './check-capabilities.ts';
import { checkCycles } from './check-cycles.ts';
import { checkEscalation } from './check-escalation.ts';
import { checkExpressions } from './check-expressions.ts';
import { checkSettings } from './check-settings.ts';
import { checkStepNames } from './check-step-names.ts';
import { readTemplates } from './definition-templates.ts';
import type { DefinitionFinding } from './finding.ts';

export const checkDefinition = (
  definition: PipelineDefinition,
  options: CapabilityOptions,
): DefinitionFinding[] => {
  const templates = readTemplates(definition);
  const suggestStep = createNameSuggester(definition.steps.map(({ id }) => id));
  return [
    ...checkStepNames(definition, suggestStep),
    ...checkExpressions(definition, templates, suggestStep),
    ...checkCycles(definition, templates),
    ...checkSettings(definition),
    ...checkEscalation(definition),
    ...checkCapabilities(definition, options),
  ];
};
