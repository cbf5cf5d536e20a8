/**
 * Compiles a valid definition into the form that a run needs: templates parsed once, dependencies resolved to indexes.
 * The templates are those of each step, of the pipeline's output and labels, and of the concurrency key. Pure and without
 * packages, so a workflow can hold it.
 */

import type { PipelineDefinition, StepDefinition } from '../contracts/pipeline.ts';
import type { Validation } from '../contracts/pipeline-answers.ts';
import type { Json } from '../contracts/primitives.ts';
import { readCondition } from '../expression/condition.ts';
import { answerDialect } from '../expression/filters.ts';
import {
  type CompiledTemplate,
  type Reference,
  readTemplate,
  references,
  type TemplateReading,
} from '../expression/template.ts';
import { createGraph, type Graph } from '../graph/dag.ts';
import { extendPointer } from '../json/values.ts';
import { finish, type Pieces } from '../pieces.ts';
import { kindFieldsOf, type StepKind, stepKindOf } from './step-settings.ts';

export interface CompiledStep {
  readonly definition: StepDefinition;
  readonly kind: StepKind;
  /** Of a step with `set`: its output. */
  readonly input: CompiledTemplate;
  /** A condition, for `evaluateCondition`; null = the step always runs. */
  readonly when: CompiledTemplate | null;
  /** The same for each item, where it reads `item` or `index`; null = all items run. */
  readonly whenItem: CompiledTemplate | null;
  /** Whether the answer of an item counts for `enough`; null = all count. */
  readonly counts: CompiledTemplate | null;
  /** Yields the list of `for_each`; null = the step runs once. */
  readonly items: CompiledTemplate | null;
  /** The condition of `repeat`; null = the step has no rounds. */
  readonly until: CompiledTemplate | null;
  /** The title of its review; null = a text without expressions, or no review. */
  readonly title: CompiledTemplate | null;
  /** The key of its event; null = a text without expressions, or no key. */
  readonly key: CompiledTemplate | null;
  /** Indexes of the steps it waits for, unique and ascending. */
  readonly dependencies: readonly number[];
}

export interface CompiledDefinition {
  readonly steps: readonly CompiledStep[];
  /** Index of a step by its id. */
  readonly indexOf: ReadonlyMap<string, number>;
  readonly output: CompiledTemplate | null;
  /** Text over `job`; null = its runs have no concurrency limit. */
  readonly concurrencyKey: CompiledTemplate | null;
  /** Texts over `job`, by name: those with expressions. */
  readonly labels: readonly (readonly [name: string, CompiledTemplate])[];
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
    indexOf: new Map(definition.steps.map(({ id }, index) => [id, index])),
    output: soundTemplate(templates.output),
    concurrencyKey: soundTemplate(templates.concurrencyKey),
    labels: templates.labels.flatMap(([name, reading]) => {
      const template = openTemplate(reading);
      return template === null ? [] : [[name, template] as const];
    }),
  };
}

function compileTemplates(
  step: StepTemplates | undefined,
): Pick<CompiledStep, 'input' | 'when' | 'whenItem' | 'counts' | 'items' | 'until' | 'title' | 'key'> {
  const input = soundTemplate(step?.input ?? null);
  if (step === undefined || input === null) throw new RangeError('a step without a template');
  const when = soundTemplate(step.when);
  const isOfItem = isWhenOfItem(step);
  return {
    input,
    when: isOfItem ? null : when,
    whenItem: isOfItem ? when : null,
    counts: soundTemplate(step.counts),
    items: soundTemplate(step.items),
    until: soundTemplate(step.until),
    title: openTemplate(step.title),
    key: openTemplate(step.key),
  };
}

/** Whether the condition of a step is judged for each of its items. */
export function isWhenOfItem({ when, items }: Pick<StepTemplates, 'when' | 'items'>): boolean {
  return items !== null && when?.references.some(({ root }) => root === 'item' || root === 'index') === true;
}

/** Null for a template without expressions, too. */
function openTemplate(reading: TemplateReading | null): CompiledTemplate | null {
  const template = soundTemplate(reading);
  return template === null || template.expressions === 0 ? null : template;
}

function soundTemplate(reading: TemplateReading | null): CompiledTemplate | null {
  if (reading === null) return null;
  if (reading.errors[0] !== undefined) throw reading.errors[0];
  return reading.template;
}

/** A template and every path in it, in the order of the text. */
export interface ReferencingTemplate extends TemplateReading {
  readonly references: readonly Reference[];
}

export interface StepTemplates {
  readonly input: ReferencingTemplate;
  /** A condition; null when the step names none. */
  readonly when: ReferencingTemplate | null;
  /** `for_each.enough.if`; null when all answers count. */
  readonly counts: ReferencingTemplate | null;
  /** `for_each.items`; null for a step that runs once. */
  readonly items: ReferencingTemplate | null;
  /** `repeat.until`; null for a step without rounds. */
  readonly until: ReferencingTemplate | null;
  /** `review.title`; null for a step of another kind. */
  readonly title: ReferencingTemplate | null;
  /** `event.key`; null for a step without it. */
  readonly key: ReferencingTemplate | null;
}

export interface DefinitionTemplates {
  /** By step index. */
  readonly steps: readonly StepTemplates[];
  /** null when the definition names no output. */
  readonly output: ReferencingTemplate | null;
  /** `concurrency.key`; null without `concurrency`. */
  readonly concurrencyKey: ReferencingTemplate | null;
  readonly labels: readonly (readonly [name: string, ReferencingTemplate])[];
}

/** After so many steps a piece of work on them ends. */
export const stepsOfPiece = 500;

function* readTemplates({
  steps,
  output,
  concurrency,
  labels = {},
}: PipelineDefinition): Pieces<DefinitionTemplates> {
  const readings: StepTemplates[] = [];
  for (const [index, step] of steps.entries()) {
    readings.push(readStep(step, `/steps/${index}`));
    if ((index + 1) % stepsOfPiece === 0) yield;
  }
  return {
    steps: readings,
    output: output === undefined ? null : read(output, '/output'),
    concurrencyKey: concurrency === undefined ? null : read(concurrency.key, '/concurrency/key'),
    labels: Object.entries(labels).map(
      ([name, text]) => [name, read(text, extendPointer('/labels', name))] as const,
    ),
  };
}

function readStep(
  { input, set, when, for_each, repeat, review, event }: StepDefinition,
  pointer: string,
): StepTemplates {
  return {
    input: set === undefined ? read(input ?? {}, `${pointer}/input`) : read(set, `${pointer}/set`),
    when: when === undefined ? null : readConditionAt(when, `${pointer}/when`),
    counts:
      typeof for_each?.enough !== 'object' || for_each.enough.if === undefined
        ? null
        : readConditionAt(for_each.enough.if, `${pointer}/for_each/enough/if`, answerDialect),
    items: for_each === undefined ? null : read(for_each.items, `${pointer}/for_each/items`),
    until: repeat === undefined ? null : readConditionAt(repeat.until, `${pointer}/repeat/until`),
    title: review === undefined ? null : read(review.title, `${pointer}/review/title`),
    key: event?.key === undefined ? null : read(event.key, `${pointer}/event/key`),
  };
}

function read(value: Json, pointer: string): ReferencingTemplate {
  const { template, errors } = readTemplate(value, pointer);
  return { template, errors, references: references(template) };
}

function readConditionAt(text: string, pointer: string, dialect?: typeof answerDialect): ReferencingTemplate {
  const { condition: template, errors } = readCondition(text, pointer, dialect);
  return { template, errors, references: references(template) };
}

/** The readings of a step, in the order of its keys. */
export function listReadings(step: StepTemplates): readonly ReferencingTemplate[] {
  const { when, items, counts, until, title, key, input } = step;
  return [when, items, counts, until, title, key, input].filter((reading) => reading !== null);
}

/** The same of a compiled step. */
export function listTemplates(step: CompiledStep): readonly CompiledTemplate[] {
  const { when, whenItem, items, counts, until, title, key, input } = step;
  return [when, whenItem, items, counts, until, title, key, input].filter((template) => template !== null);
}

export interface AnalysedDefinition {
  readonly templates: DefinitionTemplates;
  readonly graph: Graph;
}

export function analyseDefinition(definition: PipelineDefinition): AnalysedDefinition {
  return finish(analyseInPieces(definition));
}

export function* analyseInPieces(definition: PipelineDefinition): Pieces<AnalysedDefinition> {
  const templates = yield* readTemplates(definition);
  return { templates, graph: createStepGraph(definition, templates) };
}

/** The graph of steps by `depends_on` and by the steps that input, condition and items refer to. */
function createStepGraph(definition: PipelineDefinition, templates: DefinitionTemplates): Graph {
  return createGraph(
    definition.steps.map(({ id, depends_on = [] }, index) => {
      // An edge from a step to itself has its own finding and is not a cycle of the graph.
      const dependencies = [...depends_on, ...listMentioned(templates.steps[index])];
      return { id, depends_on: dependencies.filter((other) => other !== id) };
    }),
  );
}

function listMentioned(step: StepTemplates | undefined): readonly string[] {
  const mentioned = new Set<string>();
  for (const { references } of step === undefined ? [] : listReadings(step)) {
    for (const { root, segments } of references) {
      const [id] = segments;
      if (root === 'steps' && typeof id === 'string') mentioned.add(id);
    }
  }
  return [...mentioned];
}

/** Steps and edges, for drawing. */
export function showGraph(
  definition: PipelineDefinition,
  { graph: { predecessors } }: AnalysedDefinition,
): NonNullable<Validation['graph']> {
  const ids = definition.steps.map(({ id }) => id);
  return {
    steps: definition.steps.map((step) => ({ id: step.id, ...kindFieldsOf(step) })),
    edges: ids.flatMap((to, index) =>
      (predecessors[index] ?? []).map((before) => ({ from: ids[before] ?? '', to })),
    ),
  };
}
