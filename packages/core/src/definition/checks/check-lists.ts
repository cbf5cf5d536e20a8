/**
 * Finds expressions that need the list of a step with items as a whole, where the list is too large for that, before
 * its items are paid. Three facts give its size: the number of items, the least that the schema of their outputs
 * allows, and the size of such items in an earlier run.
 */
import { mostItems, showCount } from '../../contracts/limits.ts';
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import {
  findListedStep,
  type ListNeeds,
  largestOutput,
  largestScan,
  mentionsOf,
} from '../../expression/large-outputs.ts';
import type { CompiledTemplate, TemplateNode } from '../../expression/template.ts';
import { leastBytes, mostBytes } from '../../schema-types/json-size.ts';
import { isKind, kinds, type ValueType, withoutKinds } from '../../schema-types/value-type.ts';
import type { DefinitionTemplates } from '../compile.ts';
import { enoughOf } from '../step-settings.ts';
import type { DefinitionFacts, DefinitionFinding, FormerItems } from './finding.ts';

interface CheckedLists {
  readonly definition: PipelineDefinition;
  readonly templates: DefinitionTemplates;
  /** Types of the outputs of steps, by id. */
  readonly outputs: ReadonlyMap<string, ValueType>;
  readonly facts: Pick<DefinitionFacts, 'itemBytesOf'>;
}

export function checkLists({ definition, templates, outputs, facts }: CheckedLists): DefinitionFinding[] {
  const steps = new Map(definition.steps.map((step) => [step.id, step]));
  return listReads(templates).flatMap(({ step_id, needs, pointer, isOutput }): DefinitionFinding[] => {
    const step = steps.get(step_id);
    const type = outputs.get(step_id);
    if (step?.for_each === undefined || type === undefined) return [];
    if (type.list.least > mostItems) return []; // has its own finding
    const list = describeList(step, type, facts.itemBytesOf?.(step_id));
    const judged = needsWhole(needs)
      ? judge(list, { limit: largestOutput, what: 'as a whole' })
      : judge({ ...list, high: 0 }, { limit: largestScan, what: 'for their fields' });
    if (judged === null) return [];
    const effect = isOutput ? 'else the output has a reference in its place' : 'else the step fails';
    const message = `${judged.message} (steps.${step_id}.output); ${effect}`;
    return [{ severity: judged.severity, code: 'list_limit', pointer, message, suggestion }];
  });
}

const suggestion =
  'read only its length, single items or fields of its items, such as [*].name, or let each item return a media:// reference';

/** The steps of whose list an expression reads all items, or fields of all. */
export function listReadSteps(templates: DefinitionTemplates): readonly string[] {
  return [...new Set(listReads(templates).map(({ step_id }) => step_id))];
}

interface ListRead {
  readonly step_id: string;
  readonly needs: ListNeeds;
  /** Of the text with the expression. */
  readonly pointer: string;
  /** In the output of the run, which refers to what is too large. */
  readonly isOutput: boolean;
}

/** Reads of all items, or of fields of all. */
function listReads({ steps, output }: DefinitionTemplates): readonly ListRead[] {
  const inSteps = steps.flatMap(({ when, counts, items, until, input, title, key }) => {
    const isListed = items !== null && findListedStep(items.template) !== null; // is read item by item
    const readings = [when, counts, isListed ? null : items, until, title, key, input];
    return readings.flatMap((reading) => reading?.template ?? []);
  });
  const readsOf = ({ root }: CompiledTemplate, isOutput: boolean): ListRead[] =>
    expressionsOf(root).flatMap((leaf) => {
      const template = { root: leaf, expressions: 1 };
      if (isOutput && findListedStep(template) !== null) return []; // a reference leads to the same
      return mentionsOf(template)
        .filter(({ reads_output, needs }) => reads_output && (needs.isWhole || needs.fields.length > 0))
        .map(({ step_id, needs }) => ({ step_id, needs, pointer: leaf.pointer, isOutput }));
    });
  return [
    ...inSteps.flatMap((template) => readsOf(template, false)),
    ...(output === null ? [] : readsOf(output.template, true)),
  ];
}

type ExpressionNode = Extract<TemplateNode, { readonly kind: 'expression' | 'text' }>;

function expressionsOf(node: TemplateNode): readonly ExpressionNode[] {
  switch (node.kind) {
    case 'literal':
      return [];
    case 'expression':
    case 'text':
      return [node];
    case 'list':
      return node.items.flatMap(expressionsOf);
    case 'object':
      return node.entries.flatMap(([, value]) => expressionsOf(value));
  }
}

function needsWhole({ isWhole, fields }: ListNeeds): boolean {
  return isWhole || fields.some(({ length }) => length === 0);
}

interface ItemList {
  /** Bounds of its length. */
  readonly least: number;
  readonly most: number;
  /** Items that may end without an output. */
  readonly tolerated: number;
  /** Bounds of an item with an output, bytes. */
  readonly low: number;
  readonly high: number;
  readonly former: FormerItems | undefined;
}

function describeList({ for_each }: StepDefinition, { list }: ValueType, former?: FormerItems): ItemList {
  const item = list.rest();
  const enough = for_each === undefined ? null : enoughOf(for_each);
  const own = isKind(item, ~kinds.null) ? withoutKinds(item, kinds.null) : item;
  return {
    least: list.least,
    most: Math.min(list.most, mostItems),
    tolerated: enough === null ? (for_each?.tolerate ?? 0) : list.least - enough.count,
    low: leastBytes(own),
    high: mostBytes(item),
    former,
  };
}

interface Allowance {
  readonly limit: number;
  readonly what: string;
}

/** Of so many items, each may take little: 16 KiB. */
const manyItems = 1_024;

type Judgement = Pick<DefinitionFinding, 'severity' | 'message'>;

/** A small number of items with no known size has no finding. */
function judge(list: ItemList, { limit, what }: Allowance): Judgement | null {
  const { least, most, tolerated, low, high, former } = list;
  const certain = Math.max(0, least - tolerated);
  const allowed = `at most ${showCount(limit)} may be read ${what}`;
  const each = low + 1; // and a comma
  if (certain * each > limit) {
    const bytes = showCount(certain * each);
    return warn(`${showCount(certain)} items take at least ${bytes} bytes by their schema; ${allowed}`);
  }
  if (former !== undefined) {
    const bytes = Math.round(least * (former.bytes + 1));
    if (bytes <= limit) return null;
    const before = `like those of ${former.run_id}, ${showCount(Math.round(former.bytes))} bytes each`;
    return warn(`${showCount(least)} items take ${showCount(bytes)} bytes if they are ${before}; ${allowed}`);
  }
  if (least > manyItems && least * (high + 1) > limit) {
    const share = showCount(Math.floor(limit / least));
    return note(`${showCount(least)} items may take ${share} bytes each on average: ${allowed}`);
  }
  if (most * each <= limit) return null;
  const fitting = showCount(Math.floor(limit / each));
  return note(`more than ${fitting} items are too large, as each takes at least ${low} bytes; ${allowed}`);
}

function warn(message: string): Judgement {
  return { severity: 'warning', message };
}

function note(message: string): Judgement {
  return { severity: 'note', message };
}
