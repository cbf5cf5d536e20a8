import type { PipelineDefinition } from '../../../contracts/pipeline.ts';
import type { DefinitionFacts } from './definition-facts.ts';
import type { DefinitionFinding } from './finding.ts';

/** The pipelines that steps run: that they exist, and do not lead back here or too deep. */
export function checkPipelines(
  { steps }: PipelineDefinition,
  { pipelineOf = () => undefined }: Pick<DefinitionFacts, 'pipelineOf'>,
): DefinitionFinding[] {
  return steps.flatMap(({ pipeline: reference }, index): DefinitionFinding[] => {
    const form = reference === undefined ? undefined : pipelineOf(reference);
    if (form?.kind !== 'refused') return [];
    const { code, message, suggestion } = form;
    return [{ severity: 'error', code, pointer: `/steps/${index}/pipeline`, message, suggestion }];
  });
}
