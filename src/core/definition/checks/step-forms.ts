/** What a step takes and what it answers, by its kind and the schemas that are known. */
import type { StepDefinition } from '../../../contracts/pipeline.ts';
import type { JsonObject } from '../../../contracts/primitives.ts';
import { unionOf } from '../../schema-types/combine-types.ts';
import { typeOfSchema } from '../../schema-types/schema-type.ts';
import { anyType, nullType, type ValueType } from '../../schema-types/value-type.ts';
import { describeStep, stepKindOf } from '../step-kind.ts';
import type { DefinitionFacts, FindInputFaults } from './definition-facts.ts';

export interface Consumer {
  readonly name: string;
  readonly takes: ValueType;
  /** One of these is what the input meets; at least one. */
  readonly faultFinders: readonly FindInputFaults[];
}

/** Null when nothing is known about what it takes. */
export function consumerOf(step: StepDefinition, facts: DefinitionFacts): Consumer | null {
  const name = describeStep(step);
  switch (stepKindOf(step)) {
    case 'call': {
      const specs = facts.specsOf?.(step) ?? [];
      if (specs.length === 0) return null;
      return {
        name,
        takes: unionOf(specs.map(({ input }) => input)),
        faultFinders: specs.map(({ findInputFaults }) => findInputFaults),
      };
    }
    case 'run': {
      const form = facts.pipelineOf?.(step.pipeline ?? '');
      if (form?.kind !== 'found') return null;
      return { name, takes: form.job, faultFinders: [form.findInputFaults] };
    }
    case 'wait':
    case 'review':
      return null;
  }
}

/** Once; a `for_each` makes a list of it. A person who skips an item, and a failure that is tolerated, leave null. */
export function producedBy(
  step: StepDefinition,
  facts: DefinitionFacts,
  isSound: (schema: JsonObject) => boolean,
): ValueType {
  const output = outputOf(step, facts, isSound);
  const { for_each, optional, review } = step;
  const mayLeaveNull =
    for_each !== undefined &&
    ((for_each.tolerate ?? 0) > 0 || optional === true || review?.on_timeout === 'skip');
  return mayLeaveNull ? unionOf([output, nullType]) : output;
}

function outputOf(
  step: StepDefinition,
  facts: DefinitionFacts,
  isSound: (schema: JsonObject) => boolean,
): ValueType {
  switch (stepKindOf(step)) {
    case 'call': {
      const specs = facts.specsOf?.(step) ?? [];
      return specs.length === 0 ? anyType : unionOf(specs.map(({ output }) => output));
    }
    case 'run': {
      const form = facts.pipelineOf?.(step.pipeline ?? '');
      return form?.kind === 'found' ? form.output : anyType;
    }
    case 'wait':
      return nullType;
    case 'review': {
      const schema = step.review?.schema;
      return schema === undefined || !isSound(schema) ? anyType : typeOfSchema(schema);
    }
  }
}
