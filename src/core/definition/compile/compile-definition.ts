/**
 * A valid definition in the form that a run needs: templates parsed once, dependencies resolved to
 * indexes. Pure and without packages, so a workflow can hold it.
 */
import type { PipelineDefinition, StepDefinition } from '../../../contracts/pipeline.ts';
import type { CompiledTemplate, TemplateReading } from '../../expression/template.ts';
import type { StepTemplates } from '../definition-templates.ts';
import { analyseDefinition } from '../step-graph.ts';
import { type StepKind, stepKindOf } from '../step-kind.ts';

export interface CompiledStep {
  readonly definition: StepDefinition;
  readonly kind: StepKind;
  readonly input: CompiledTemplate;
  /** A condition, for `evaluateCondition`; null = the step always happens. */
  readonly when: CompiledTemplate | null;
  /** Yields the list of `for_each`; null = the step happens once. */
  readonly items: CompiledTemplate | null;
  /** Indexes of the steps it waits for, each once, ascending. */
  readonly dependencies: readonly number[];
}

export interface CompiledDefinition {
  readonly steps: readonly CompiledStep[];
  readonly output: CompiledTemplate | null;
  /** Text over `job`; null = its runs are not counted. */
  readonly concurrencyKey: CompiledTemplate | null;
}

/** @throws ExpressionSyntaxError when an expression cannot be read: the definition was never checked */
export function compileDefinition(definition: PipelineDefinition): CompiledDefinition {
  const { templates, graph } = analyseDefinition(definition);
  return {
    steps: definition.steps.map((step, index) => ({
      definition: step,
      kind: stepKindOf(step),
      ...compileTemplates(templates.steps[index]),
      dependencies: graph.predecessors[index] ?? [],
    })),
    output: soundTemplate(templates.output),
    concurrencyKey: soundTemplate(templates.concurrencyKey),
  };
}

function compileTemplates(step: StepTemplates | undefined): Pick<CompiledStep, 'input' | 'when' | 'items'> {
  const input = soundTemplate(step?.input ?? null);
  if (step === undefined || input === null) throw new RangeError('a step without a template');
  return { input, when: soundTemplate(step.when), items: soundTemplate(step.items) };
}

function soundTemplate(reading: TemplateReading | null): CompiledTemplate | null {
  if (reading === null) return null;
  if (reading.errors[0] !== undefined) throw reading.errors[0];
  return reading.template;
}
