/**
 * Checks a step's input against its consumer: types where it has expressions, whole values where it has none.
 *
 * Holds what a step accepts and produces, by its kind and the known schemas, and the part of a template that is known
 * before evaluation.
 */

import { isModelName } from '../../contracts/model-alias.ts';
import type { StepDefinition } from '../../contracts/pipeline.ts';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import type { TemplateNode } from '../../expression/template.ts';
import { findSchemaFault } from '../../foreign-schema.ts';
import { extendPointer, isList, isPlainObject, splitPointer } from '../../json/values.ts';
import { intersectionOf, unionOf } from '../../schema-types/combine-types.ts';
import { typeOfSchema } from '../../schema-types/schema-type.ts';
import { fitTemplate, type TemplateTypes } from '../../schema-types/template-type.ts';
import { anyType, type Effort, nullType, type ValueType } from '../../schema-types/value-type.ts';
import { describeStep, stepKindOf } from '../step-settings.ts';
import type { DefinitionFacts, DefinitionFinding, FindInputFaults, InputFault } from './finding.ts';

interface InputCheck {
  readonly consumer: Consumer;
  readonly input: {
    /** The input as the definition has it. */
    readonly written: Json;
    readonly root: TemplateNode;
    readonly types: TemplateTypes;
  };
  /** Pointer of the input in the definition. */
  readonly pointer: string;
  /** Effort left for comparing types. */
  readonly effort: Effort;
  /** Effort left for validating values. */
  readonly work: Effort;
  readonly report: (finding: DefinitionFinding) => void;
}

export function checkInput({ consumer, input, pointer, effort, work, report }: InputCheck): void {
  const told = new Set<string>();
  const place = (inValue: string): string => pointer + locateInTemplate(input.written, splitPointer(inValue));
  fitTemplate(input.root, consumer.takes, {
    types: input.types,
    consumer: consumer.name,
    effort,
    report: (fault) => {
      if (fault.severity === 'error') told.add(fault.pointer);
      report({ ...fault, pointer: place(fault.pointer) });
    },
  });
  for (const { pointer: at, message } of findCertainFaults(consumer, input.root, work)) {
    if (isTold(at, told)) continue;
    report({
      severity: 'error',
      code: 'input_invalid',
      pointer: place(at),
      message: `${consumer.name} does not take this: it ${message}`,
    });
  }
}

/** Faults that hold whatever the expressions yield, and for every possible spec. */
function findCertainFaults(
  { faultFinders }: Consumer,
  root: TemplateNode,
  work: Effort,
): readonly InputFault[] {
  const { value, holes } = readPartialValue(root);
  let first: readonly InputFault[] = [];
  for (const find of faultFinders) {
    const faults = find(value, holes, work);
    if (faults.length === 0) return [];
    if (first.length === 0) first = faults;
  }
  return first;
}

/** Whether a fault was already reported at this pointer, above it or below it. */
function isTold(pointer: string, told: ReadonlySet<string>): boolean {
  return [...told].some(
    (other) => pointer === other || pointer.startsWith(`${other}/`) || other.startsWith(`${pointer}/`),
  );
}

interface Consumer {
  readonly name: string;
  readonly takes: ValueType;
  /** At least one; the input has to satisfy one of them. */
  readonly faultFinders: readonly FindInputFaults[];
}

/** Null when nothing is known about the accepted input. */
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
    case 'event':
    case 'set':
      return null;
  }
}

/** The type of the output, a list for `for_each`. A skipped item and a tolerated failure yield null. */
export function producedBy(
  step: StepDefinition,
  facts: DefinitionFacts,
  isSound: (schema: JsonObject) => boolean,
): ValueType {
  return withGaps(step, outputOf(step, facts, isSound));
}

/** Adds null, where an item may have no output. */
export function withGaps({ for_each, optional, review }: StepDefinition, output: ValueType): ValueType {
  const mayLeaveNull =
    for_each !== undefined &&
    ((for_each.tolerate ?? 0) > 0 ||
      for_each.enough !== undefined ||
      optional === true ||
      review?.on_timeout === 'skip');
  return mayLeaveNull ? unionOf([output, nullType]) : output;
}

/** The schema of the answer that a step asks a model for; null: it may have another answer, or none. */
function findAnswerSchema(
  { capability = '', input = {}, allow_output = false }: StepDefinition,
  output: ValueType,
): JsonObject | null {
  if (!isModelName(capability) || allow_output || !isPlainObject(input)) return null;
  const { response_schema: schema, tools, n } = input;
  if (tools !== undefined || n !== undefined || output.object?.names().has('json') !== true) return null;
  const isWhole = isPlainObject(schema) && !JSON.stringify(schema).includes('{{');
  return isWhole && findSchemaFault(schema) === null ? schema : null;
}

/** An answer that does not match its schema fails the step. */
function withAnswer(output: ValueType, schema: JsonObject): ValueType {
  const asked = { type: 'object', properties: { json: schema }, required: ['json'] };
  return intersectionOf([output, typeOfSchema(asked)]);
}

function outputOf(
  step: StepDefinition,
  facts: DefinitionFacts,
  isSound: (schema: JsonObject) => boolean,
): ValueType {
  switch (stepKindOf(step)) {
    case 'call': {
      const specs = facts.specsOf?.(step) ?? [];
      if (specs.length === 0) return anyType;
      const output = unionOf(specs.map((spec) => spec.output));
      const schema = findAnswerSchema(step, output);
      return schema === null ? output : withAnswer(output, schema);
    }
    case 'run': {
      const form = facts.pipelineOf?.(step.pipeline ?? '');
      return form?.kind === 'found' ? form.output : anyType;
    }
    case 'wait':
      return nullType;
    case 'set':
      return anyType; // known by its template
    case 'review': {
      const schema = step.review?.schema;
      return schema === undefined || !isSound(schema) ? anyType : typeOfSchema(schema);
    }
    case 'event': {
      const { schema, on_timeout } = step.event ?? {};
      const payload = schema === undefined || !isSound(schema) ? anyType : typeOfSchema(schema);
      return on_timeout === 'continue' ? unionOf([payload, nullType]) : payload;
    }
  }
}

interface PartialValue {
  /** The value, with null in each hole. */
  readonly value: Json;
  /** Pointers into the value. */
  readonly holes: ReadonlySet<string>;
}

function readPartialValue(root: TemplateNode): PartialValue {
  const holes = new Set<string>();
  const read = (node: TemplateNode, pointer: string): Json => {
    switch (node.kind) {
      case 'literal':
        return node.value;
      case 'list':
        return node.items.map((item, index) => read(item, `${pointer}/${index}`));
      case 'object':
        return Object.fromEntries(
          node.entries.map(([key, value]) => [key, read(value, extendPointer(pointer, key))]),
        );
      case 'expression':
      case 'text':
        holes.add(pointer);
        return null;
    }
  };
  return { value: read(root, ''), holes };
}

/** Locates a part of the evaluated value in the written template, below each `$literal` on the way. */
function locateInTemplate(written: Json, segments: readonly string[]): string {
  let at: Json | undefined = written;
  let pointer = '';
  let isLiteral = false;
  for (const segment of segments) {
    if (!isLiteral && isPlainObject(at) && Object.hasOwn(at, '$literal')) {
      isLiteral = true;
      pointer += '/$literal';
      at = at.$literal;
    }
    pointer = extendPointer(pointer, segment);
    if (at === undefined || at === null || typeof at !== 'object') at = undefined;
    else at = isList(at) ? at[Number(segment)] : at[segment];
  }
  return pointer;
}
