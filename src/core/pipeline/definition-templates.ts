/** The templates of a definition: the input of each step and the pipeline's output. */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import { readTemplate, type TemplateReading } from '../expression/template.ts';

export interface DefinitionTemplates {
  /** By step index. */
  readonly inputs: readonly TemplateReading[];
  /** null when the definition names no output. */
  readonly output: TemplateReading | null;
}

export const readTemplates = (definition: PipelineDefinition): DefinitionTemplates => ({
  inputs: definition.steps.map((step, index) => readTemplate(step.input ?? {}, `/steps/${index}/input`)),
  output: definition.output === undefined ? null : readTemplate(definition.output, '/output'),
});
