/**
 * Makes a definition of broken shape checkable: what the contract refused is left out, or stands in as a
 * placeholder where it is required, so that the other findings are reported in the same answer. A
 * salvaged definition is never run or stored.
 */
import type { z } from 'zod';
import { PipelineDefinition } from '../contracts/pipeline.ts';
import type { Json } from '../contracts/primitives.ts';
import { isList, isPlainObject } from '../core/json-type.ts';

export interface SalvagedDefinition {
  readonly definition: PipelineDefinition;
  /** False when a step has no readable id: whether other names are unknown cannot be told. */
  readonly idsKnown: boolean;
  /** Pointers of placeholders; what is found there is not the author's. */
  readonly placeholders: ReadonlySet<string>;
}

function placeholderId(index: number): string {
  return `_unreadable_step_${index}`;
}

export function salvageDefinition(
  value: Json,
  issues: readonly z.core.$ZodIssue[],
): SalvagedDefinition | null {
  if (!isPlainObject(value) || !isList(value.steps ?? null)) return null;
  const copy: Salvage = {
    root: { ...value },
    steps: (value.steps as readonly Json[]).map((step) => (isPlainObject(step) ? { ...step } : {})),
    placeholders: new Set(),
  };
  for (const issue of issues) for (const path of brokenPaths(issue)) mend(copy, path);
  const parsed = PipelineDefinition.safeParse({ ...copy.root, steps: copy.steps });
  if (!parsed.success) return null;
  const idsKnown = !copy.steps.some((_, index) => copy.placeholders.has(`/steps/${index}/id`));
  return { definition: parsed.data, idsKnown, placeholders: copy.placeholders };
}

interface Salvage {
  readonly root: Record<string, Json>;
  readonly steps: Record<string, Json>[];
  readonly placeholders: Set<string>;
}

type KeyPath = readonly PropertyKey[];

function brokenPaths(issue: z.core.$ZodIssue): KeyPath[] {
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
}

function mend(copy: Salvage, [top, index, key]: KeyPath): void {
  if (top === 'steps') mendStep(copy, Number(index), key);
  else if (top === 'pipeline' || top === 'version') {
    copy.root[top] = 'unreadable';
    copy.placeholders.add(`/${top}`);
  } else delete copy.root[String(top)];
}

/** One of them makes the step what it is. */
const kindKeys: ReadonlySet<PropertyKey> = new Set(['capability', 'pipeline', 'wait', 'review']);

/** @param key undefined when the step is no object at all */
function mendStep(copy: Salvage, index: number, key: PropertyKey | undefined): void {
  const step = copy.steps[index];
  if (step === undefined) return;
  if (key === undefined || key === 'id') putPlaceholder(copy, index, 'id', placeholderId(index));
  if (key === 'id') return;
  if (key !== undefined) delete step[String(key)];
  if (key === 'for_each') step.for_each = { items: [] }; // its input may name an item
  if (key === 'depends_on') delete step.run_if;
  const isKindless = ![...kindKeys].some((kind) => Object.hasOwn(step, kind));
  if (key === undefined || (kindKeys.has(key) && isKindless)) {
    putPlaceholder(copy, index, 'capability', 'unreadable');
  }
}

function putPlaceholder(
  { steps, placeholders }: Salvage,
  index: number,
  name: 'id' | 'capability',
  text: string,
): void {
  const step = steps[index];
  if (step === undefined) return;
  step[name] = text;
  placeholders.add(`/steps/${index}/${name}`);
}
