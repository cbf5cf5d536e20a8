/** The templates of a definition: of each step, the pipeline's output, and the key that its runs are counted by. */
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import type { Json } from '../../contracts/primitives.ts';
import { readCondition } from '../expression/condition.ts';
import { type Reference, references } from '../expression/references.ts';
import { readTemplate, type TemplateReading } from '../expression/template.ts';

/** A template and every path in it, in the order of the text. */
export interface ReferencingTemplate extends TemplateReading {
  readonly references: readonly Reference[];
}

export interface StepTemplates {
  readonly input: ReferencingTemplate;
  /** A condition; null when the step names none. */
  readonly when: ReferencingTemplate | null;
  /** `for_each.items`; null for a step that happens once. */
  readonly items: ReferencingTemplate | null;
}

export interface DefinitionTemplates {
  /** By step index. */
  readonly steps: readonly StepTemplates[];
  /** null when the definition names no output. */
  readonly output: ReferencingTemplate | null;
  /** `concurrency.key`; null without `concurrency`. */
  readonly concurrencyKey: ReferencingTemplate | null;
}

export function readTemplates({ steps, output, concurrency }: PipelineDefinition): DefinitionTemplates {
  return {
    steps: steps.map((step, index) => readStep(step, `/steps/${index}`)),
    output: output === undefined ? null : read(output, '/output'),
    concurrencyKey: concurrency === undefined ? null : read(concurrency.key, '/concurrency/key'),
  };
}

function readStep({ input, when, for_each }: StepDefinition, pointer: string): StepTemplates {
  return {
    input: read(input ?? {}, `${pointer}/input`),
    when: when === undefined ? null : readWhen(when, `${pointer}/when`),
    items: for_each === undefined ? null : read(for_each.items, `${pointer}/for_each/items`),
  };
}

function read(value: Json, pointer: string): ReferencingTemplate {
  const { template, errors } = readTemplate(value, pointer);
  return { template, errors, references: references(template) };
}

function readWhen(when: string, pointer: string): ReferencingTemplate {
  const { condition: template, errors } = readCondition(when, pointer);
  return { template, errors, references: references(template) };
}

/** Those of a step in the order of its keys. */
export function listReadings({ input, when, items }: StepTemplates): readonly ReferencingTemplate[] {
  return [when, items, input].filter((reading) => reading !== null);
}
