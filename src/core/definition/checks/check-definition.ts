/**
 * Everything that can be said about a definition of sound shape, with what is known of the world around it: all
 * findings at once, each with a JSON Pointer. No finding of severity `error` means that `compileDefinition` and a
 * run accept it.
 */
import type { PipelineDefinition } from '../../../contracts/pipeline.ts';
import { createNameSuggester } from '../../nearest-name.ts';
import { type AnalysedDefinition, analyseDefinition } from '../step-graph.ts';
import { checkCache } from './check-cache.ts';
import { checkCapabilities } from './check-capabilities.ts';
import { checkCycles } from './check-cycles.ts';
import { checkEscalation } from './check-escalation.ts';
import { checkExpressions } from './check-expressions.ts';
import { checkKinds } from './check-kinds.ts';
import { checkOrder } from './check-order.ts';
import { checkPipelines } from './check-pipelines.ts';
import { checkSchemas } from './check-schemas.ts';
import { checkSettings } from './check-settings.ts';
import { checkStepNames } from './check-step-names.ts';
import { checkTypes } from './check-types.ts';
import type { DefinitionFacts } from './definition-facts.ts';
import type { DefinitionFinding } from './finding.ts';

export function checkDefinition(
  definition: PipelineDefinition,
  facts: DefinitionFacts,
  { templates, graph }: AnalysedDefinition = analyseDefinition(definition),
): DefinitionFinding[] {
  const suggestStep = createNameSuggester(definition.steps.map(({ id }) => id));
  const schemas = checkSchemas(definition, facts);
  return [
    ...checkKinds(definition),
    ...checkStepNames(definition, suggestStep),
    ...checkExpressions(definition, templates, suggestStep),
    ...checkCycles(definition, graph),
    ...checkOrder(definition, graph),
    ...checkSettings(definition),
    ...checkEscalation(definition),
    ...schemas.findings,
    ...checkPipelines(definition, facts),
    ...checkCapabilities(definition, facts),
    ...checkCache(definition, facts),
    ...checkTypes({ definition, templates, graph, facts, isSound: schemas.isSound }),
  ];
}
