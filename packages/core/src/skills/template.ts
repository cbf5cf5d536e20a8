/**
 * A skill's template of a correction. Text that starts with `[` is a JSON Patch. Any other text (also one that starts
 * with an expression) is literal text, for jobs outside steps, except the name of a decided repair
 * (repair/decided-repairs.ts). Merge patches are rejected, because they cannot state the expected value. String leaves may hold expressions over `input` and `match`.
 *
 * Also tracks which places of the document a patch has tested. A test on a place covers everything below it, until an
 * operation moves the items of its list.
 */
import type { Json } from '../contracts/primitives.ts';
import type { RepairIdentity } from '../contracts/review.ts';
import { isEqual } from '../expression/compare.ts';
import { evaluateTemplate } from '../expression/evaluate.ts';
import type { SkillScope } from '../expression/evaluation.ts';
import { skillDialect } from '../expression/filters.ts';
import { ExpressionError, type ExpressionSyntaxError } from '../expression/language.ts';
import { Meter, workLimits } from '../expression/meter.ts';
import {
  type CompiledTemplate,
  hasReference,
  readTemplate,
  type TemplateReading,
} from '../expression/template.ts';
import {
  applyOperation,
  createCopyBudget,
  type PatchOperation,
  readPatch,
  showPointer,
  valueAt,
} from '../json/patch.ts';
import { isPlainObject } from '../json/values.ts';
import { readRepairTemplate } from '../repair/decided-repairs.ts';
import { findProtectedChange } from './protected.ts';

/** Values are compiled; paths stay as written. */
type TemplateOperation = PatchOperation<CompiledTemplate>;

type SkillTemplate =
  | { readonly kind: 'patch'; readonly operations: readonly TemplateOperation[] }
  | { readonly kind: 'text'; readonly text: CompiledTemplate }
  /** Needs the schema of the input (ladder/correction.ts). */
  | { readonly kind: 'repair'; readonly repair: RepairIdentity };

type TemplateParsing =
  | { readonly ok: true; readonly template: SkillTemplate }
  | { readonly ok: false; readonly message: string };

export function parseTemplate(text: string): TemplateParsing {
  const start = text.trimStart();
  if (start.startsWith('[')) return parseJsonTemplate(text);
  if (start.startsWith('{') && !start.startsWith('{{')) return { ok: false, message: mergeRefusal };
  if (start === '') return { ok: false, message: 'the template is empty' };
  const repair = readRepairTemplate(text);
  if (repair !== null) return { ok: true, template: { kind: 'repair', repair } };
  const reading = readValue(text, '');
  return ifSound(reading, { kind: 'text', text: reading.template });
}

const mergeRefusal =
  'a template that starts with { is no JSON Patch: send a list such as [{"op":"test","path":"/rate","value":"44.1k"},{"op":"replace","path":"/rate","value":44100}]';

function parseJsonTemplate(text: string): TemplateParsing {
  try {
    return parsePatch(JSON.parse(text));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const message = `a template that starts like a JSON Patch has to be JSON: ${error.message.slice(0, 200)}`;
    return { ok: false, message };
  }
}

function parsePatch(value: Json): TemplateParsing {
  const patch = readPatch(value);
  if (!patch.ok) return patch;
  const errors: ExpressionSyntaxError[] = [];
  const operations = patch.operations.map((operation, index): TemplateOperation => {
    if (!('value' in operation)) return operation;
    const reading = readValue(operation.value, `/${index}/value`);
    errors.push(...reading.errors);
    return { ...operation, value: reading.template };
  });
  return ifSound({ errors }, { kind: 'patch', operations });
}

function readValue(value: Json, pointer: string): TemplateReading {
  return readTemplate(value, pointer, skillDialect);
}

function ifSound(
  { errors }: { readonly errors: readonly ExpressionSyntaxError[] },
  template: SkillTemplate,
): TemplateParsing {
  const [first] = errors;
  if (first === undefined) return { ok: true, template };
  const hint = first.suggestion === undefined ? '' : `; ${first.suggestion}`;
  const place = first.pointer === '' ? '' : ` in ${first.pointer}`;
  return { ok: false, message: `${first.message} (at character ${first.offset}${place})${hint}` };
}

/** Whether the value depends on the input or the error. */
export function isDerived(value: Json): boolean {
  return hasReference(readValue(value, '').template);
}

/** The form in which a template yields exactly this value, whatever its strings look like. */
export function quoteValue(value: Json): Json {
  const { template, errors } = readValue(value, '');
  const isKept = errors.length === 0 && template.root.kind === 'literal' && template.root.value === value;
  return isKept ? value : { $literal: value };
}

interface Guards {
  isGuarded(pointer: string): boolean;
  /** Records an operation; must be called for every one, in order. */
  note(operation: TemplateOperation): void;
}

function createGuards(): Guards {
  const tested = new Set<string>();

  const forgetSiblings = (pointer: string): void => {
    const parent = pointer.slice(0, pointer.lastIndexOf('/') + 1);
    for (const known of tested) if (known.startsWith(parent)) tested.delete(known);
  };

  return {
    isGuarded: (pointer) => {
      for (let at = pointer; ; at = at.slice(0, at.lastIndexOf('/'))) {
        if (tested.has(at)) return true;
        if (at === '') return false;
      }
    },
    note: (operation) => {
      if (operation.op === 'test') {
        if (!hasReference(operation.value)) tested.add(operation.path);
        return;
      }
      if (operation.op === 'move') forgetSiblings(operation.from);
      if (movesItems(operation)) forgetSiblings(operation.path);
    },
  };
}

function movesItems({ op, path }: TemplateOperation): boolean {
  return op !== 'replace' && op !== 'test' && /\/\d+$/.test(path);
}

function isDerivedOperation(operation: TemplateOperation): boolean {
  return 'value' in operation && hasReference(operation.value);
}

/** @returns a description of the first replacement or removal without a test before it, or null */
export function findUnguardedChange(operations: readonly TemplateOperation[]): string | null {
  const guards = createGuards();
  for (const operation of operations) {
    const { op, path } = operation;
    const isLiteral = op === 'remove' || (op === 'replace' && !isDerivedOperation(operation));
    if (isLiteral && !guards.isGuarded(path)) {
      return `${op} of ${showPointer(path)} needs a test on the old value before it`;
    }
    guards.note(operation);
  }
  return null;
}

export type TemplateResult =
  /** The corrected input; for literal text, the text itself. */
  { readonly ok: true; readonly input: Json } | { readonly ok: false; readonly reason: string };

function stop(reason: string): TemplateResult {
  return { ok: false, reason };
}

/**
 * Applies a template to a new input. It either corrects the input or returns why it does not apply. No input makes it
 * throw, and protected values stay as they are.
 * @param meter of all templates that are tried
 */
export function applyTemplate(
  template: SkillTemplate,
  scope: SkillScope,
  meter: Meter = new Meter(workLimits.request),
): TemplateResult {
  try {
    switch (template.kind) {
      case 'text':
        return { ok: true, input: evaluateTemplate(template.text, scope, meter) };
      case 'patch':
        return correct(template.operations, scope, meter);
      case 'repair':
        return stop('a repair needs the schema of the input');
    }
  } catch (error) {
    if (error instanceof ExpressionError) return stop(error.message);
    throw error;
  }
}

/** @throws ExpressionError when an expression has no value for this input */
function correct(operations: readonly TemplateOperation[], scope: SkillScope, meter: Meter): TemplateResult {
  const guards = createGuards();
  const budget = createCopyBudget();
  let input = scope.input;
  for (const operation of operations) {
    if (overwrites(input, operation, guards)) {
      return stop(`${operation.op} finds a value at ${showPointer(operation.path)} that it did not expect`);
    }
    const step = applyOperation(input, evaluateOperation(operation, scope, meter), budget);
    if (!step.ok) return step;
    input = step.value;
    guards.note(operation);
  }
  if (isEqual(input, scope.input)) return stop('the template changes nothing in this input');
  const fault = findProtectedChange(scope.input, input);
  return fault === null ? { ok: true, input } : stop(`${showPointer(fault.pointer)} ${fault.reason}`);
}

function evaluateOperation(operation: TemplateOperation, scope: SkillScope, meter: Meter): PatchOperation {
  if (!('value' in operation)) return operation;
  return { ...operation, value: evaluateTemplate(operation.value, scope, meter) };
}

/** JSON Patch lets `add`, `move` and `copy` replace a member; here that needs a test or a derived value. */
function overwrites(input: Json, operation: TemplateOperation, guards: Guards): boolean {
  const { op, path } = operation;
  if (op !== 'add' && op !== 'move' && op !== 'copy') return false;
  if (isDerivedOperation(operation) || guards.isGuarded(path)) return false;
  const parent = path === '' ? undefined : valueAt(input, path.slice(0, path.lastIndexOf('/')));
  return (path === '' || isPlainObject(parent)) && valueAt(input, path) !== undefined;
}
