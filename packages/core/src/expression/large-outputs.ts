/**
 * What a run does with values that are too large. Its steps have succeeded and are paid for, so size alone fails no run:
 * an output names what is too large by reference (O1). An expression reads of a large list only what it needs: its
 * length, some items, or fields of all items (O2). O1 and O2 hold in the engine and in mock runs.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isPlainObject } from '../json/values.ts';
import type { Path, Segment } from './ast.ts';
import { evaluateTemplate } from './evaluate.ts';
import type { ExpressionScope } from './evaluation.ts';
import { ExpressionError } from './language.ts';
import type { Meter } from './meter.ts';
import { type CompiledTemplate, visitPaths } from './template.ts';

/** The limit of the output of a run, and of what an expression reads of the items of a step, bytes. */
export const largestOutput = 16 * 1_048_576;

/** The most bytes of the items of a step that are read one after the other, for fields of them. */
export const largestScan = 128 * 1_048_576;

/** A part of a run's output. */
export interface SizedPart {
  readonly name: string;
  /** As JSON text. */
  readonly bytes: number;
}

/** O1: the largest parts are given by reference, until the rest fits. @returns their names */
export function chooseReferences(parts: readonly SizedPart[], limit = largestOutput): ReadonlySet<string> {
  let bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  const chosen = new Set<string>();
  for (const part of [...parts].sort((a, b) => b.bytes - a.bytes)) {
    if (bytes <= limit) break;
    chosen.add(part.name);
    bytes -= part.bytes;
  }
  return chosen;
}

export interface LargeOutput {
  readonly bytes: number;
  readonly run_id: string;
  /** The step that has it, or most of it; null: no step does. */
  readonly step: string | null;
}

/** Replaces a part of an output that is too large. */
export function referTo({ bytes, run_id, step }: LargeOutput): JsonObject {
  if (step === null) return { $too_large: { bytes } };
  return { $too_large: { step, bytes, href: `/v1/runs/${run_id}/steps/${encodeURIComponent(step)}` } };
}

/** A part of an output whose value is too large to be made, or to be kept beside the others. */
export const tooLargeValue = Symbol('too large');

/** @returns the value, or that it is too large. @throws ExpressionError for any other reason */
export function evaluatePart(
  template: CompiledTemplate,
  scope: ExpressionScope,
  meter?: Meter,
): Json | typeof tooLargeValue {
  try {
    return evaluateTemplate(template, scope, meter);
  } catch (error) {
    if (error instanceof ExpressionError && error.isTooLarge) return tooLargeValue;
    throw error;
  }
}

/** The templates of the members of an output, by name; an output that is no object is one part, with the name ''. */
export function partsOfOutput({
  root,
  expressions,
}: CompiledTemplate): ReadonlyMap<string, CompiledTemplate> {
  if (root.kind !== 'object') return new Map([['', { root, expressions }]]);
  return new Map(root.entries.map(([name, node]) => [name, { root: node, expressions }]));
}

// O2

/** What an expression reads of the list of a step with items. */
export interface ListNeeds {
  /** All of it. */
  isWhole: boolean;
  /** Items, from 1; `last` is the last one. */
  readonly items: Set<number | 'last'>;
  /** Paths below every item. */
  readonly fields: (readonly string[])[];
}

/** A step that expressions mention. */
export interface StepMention {
  readonly step_id: string;
  /** Not only its state, error or cost. */
  readonly reads_output: boolean;
  readonly needs: ListNeeds;
}

/** Lists each step that a template mentions once. */
export function mentionsOf(template: CompiledTemplate): readonly StepMention[] {
  const mentions = new Map<string, StepMention>();
  visitPaths(template, ({ root, segments: [step, field, ...below] }, filter) => {
    if (root !== 'steps' || typeof step !== 'string') return;
    const reads_output = field === undefined || field === 'output';
    const known = mentions.get(step) ?? { step_id: step, reads_output, needs: newNeeds() };
    mentions.set(step, { ...known, reads_output: known.reads_output || reads_output });
    if (reads_output) addNeed(known.needs, below, filter);
  });
  return [...mentions.values()];
}

/** Mentions steps whose whole output is read. */
export function mentionWhole(stepIds: readonly string[]): readonly StepMention[] {
  return stepIds.map((step_id) => ({
    step_id,
    reads_output: true,
    needs: { ...newNeeds(), isWhole: true },
  }));
}

/** Mentions a step of whose list only the length is read, and perhaps one item. */
export function mentionItem(step_id: string, item: number | undefined): StepMention {
  const items = item === undefined ? [] : [item];
  return { step_id, reads_output: true, needs: { ...newNeeds(), items: new Set(items) } };
}

/** The step whose output the template is, unchanged; null: it is something else. */
export function findListedStep({ root }: CompiledTemplate): string | null {
  if (root.kind !== 'expression' || root.expression.kind !== 'path') return null;
  const { root: name, segments } = root.expression;
  const [step, field] = segments;
  const isOutput = name === 'steps' && field === 'output' && segments.length === 2;
  return isOutput && typeof step === 'string' ? step : null;
}

function newNeeds(): ListNeeds {
  return { isWhole: false, items: new Set(), fields: [] };
}

type FirstFilter = Parameters<Parameters<typeof visitPaths>[1]>[1];

function addNeed(needs: ListNeeds, [first, ...rest]: Path['segments'], filter: FirstFilter): void {
  if (typeof first === 'number') needs.items.add(first + 1);
  else if (typeof first === 'object') needs.fields.push(fieldsOf(rest));
  else if (first !== undefined)
    return; // a list has no such key, whatever it holds
  else if (filter?.name === 'length') return;
  else if (filter?.name === 'first') needs.items.add(1);
  else if (filter?.name === 'last') needs.items.add('last');
  else if (filter?.name === 'map' && typeof filter.argument === 'string')
    needs.fields.push([filter.argument]);
  else needs.isWhole = true;
}

/** The keys up to an index or another `[*]`. */
function fieldsOf(segments: readonly Segment[]): readonly string[] {
  const end = segments.findIndex((segment) => typeof segment !== 'string');
  return segments.slice(0, end < 0 ? undefined : end) as readonly string[];
}

/** The value without the keys that no path needs. */
export function keepFields(value: Json, paths: readonly (readonly string[])[]): Json {
  if (!isPlainObject(value) || paths.some(({ length }) => length === 0)) return value;
  const below = new Map<string, (readonly string[])[]>();
  for (const [first = '', ...rest] of paths) {
    const known = below.get(first);
    if (known === undefined) below.set(first, [rest]);
    else known.push(rest);
  }
  const kept: Record<string, Json> = {};
  for (const [key, rest] of below)
    if (Object.hasOwn(value, key)) kept[key] = keepFields(value[key] ?? null, rest);
  return kept;
}
