/**
 * A valid definition in the form that a run needs: templates parsed once, dependencies resolved to
 * indexes. Pure and without packages, so a workflow can hold it.
 */
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import type { CompiledTemplate, TemplateReading } from '../expression/template.ts';
import { readTemplates } from './definition-templates.ts';
import { createStepGraph } from './step-graph.ts';

export interface CompiledStep {
  readonly definition: StepDefinition;
  readonly input: CompiledTemplate;
  /** Indexes of the steps it waits for, each once, ascending. */
  readonly dependencies: readonly number[];
}

export interface CompiledDefinition {
  readonly steps: readonly CompiledStep[];
  readonly output: CompiledTemplate | null;
}

/** @throws ExpressionSyntaxError when an expression cannot be read: the definition was never checked */
export const compileDefinition = (definition: PipelineDefinition): CompiledDefinition => {
  const templates = readTemplates(definition);
  const { predecessors } = createStepGraph(definition, templates);
  return {
    steps: definition.steps.map((step, index) => ({
      definition: step,
      input: soundTemplate(templates.inputs[index]),
      dependencies: predecessors[index] ?? [],
    })),
    output: templates.output === null ? null : soundTemplate(templates.output),
  };
};

const soundTemplate = (reading: TemplateReading | undefined): CompiledTemplate => {
  if (reading === undefined) throw new RangeError('a step without a template');
  if (reading.errors[0] !== undefined) throw reading.errors[0];
  return reading.template;
};
