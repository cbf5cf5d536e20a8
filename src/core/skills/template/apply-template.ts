/**
 * Applies a template to another input than the one it was written for. It either corrects the input or says why it
 * does not apply; no input makes it fail, and what is protected stays as it is.
 */
import type { Json } from '../../../contracts/primitives.ts';
import { isEqual } from '../../expression/equality.ts';
import { ExpressionError } from '../../expression/errors.ts';
import { evaluateTemplate } from '../../expression/evaluate.ts';
import type { SkillScope } from '../../expression/evaluation.ts';
import { isPlainObject } from '../../json-type.ts';
import { createGuards, type Guards, isDerivedOperation } from './guards.ts';
import { applyOperation, createCopyBudget, type PatchOperation, showPointer } from './json-patch.ts';
import { valueAt } from './pointer.ts';
import { findProtectedChange } from './protected.ts';
import type { SkillTemplate, TemplateOperation } from './template.ts';

export type TemplateResult =
  /** The corrected input; for literal text, what the text says. */
  { readonly ok: true; readonly input: Json } | { readonly ok: false; readonly reason: string };

function stop(reason: string): TemplateResult {
  return { ok: false, reason };
}

export function applyTemplate(template: SkillTemplate, scope: SkillScope): TemplateResult {
  try {
    switch (template.kind) {
      case 'text':
        return { ok: true, input: evaluateTemplate(template.text, scope) };
      case 'patch':
        return correct(template.operations, scope);
    }
  } catch (error) {
    if (error instanceof ExpressionError) return stop(error.message);
    throw error;
  }
}

/** @throws ExpressionError when an expression has no value for this input */
function correct(operations: readonly TemplateOperation[], scope: SkillScope): TemplateResult {
  const guards = createGuards();
  const budget = createCopyBudget();
  let input = scope.input;
  for (const operation of operations) {
    if (overwrites(input, operation, guards)) {
      return stop(`${operation.op} finds a value at ${showPointer(operation.path)} that it did not expect`);
    }
    const step = applyOperation(input, evaluateOperation(operation, scope), budget);
    if (!step.ok) return step;
    input = step.value;
    guards.note(operation);
  }
  if (isEqual(input, scope.input)) return stop('the template changes nothing in this input');
  const fault = findProtectedChange(scope.input, input);
  return fault === null ? { ok: true, input } : stop(`${showPointer(fault.pointer)} ${fault.reason}`);
}

function evaluateOperation(operation: TemplateOperation, scope: SkillScope): PatchOperation {
  return 'value' in operation ? { ...operation, value: evaluateTemplate(operation.value, scope) } : operation;
}

/** JSON Patch lets `add`, `move` and `copy` replace a member; here only what was tested or is derived may. */
function overwrites(input: Json, operation: TemplateOperation, guards: Guards): boolean {
  const { op, path } = operation;
  if (op !== 'add' && op !== 'move' && op !== 'copy') return false;
  if (isDerivedOperation(operation) || guards.isGuarded(path)) return false;
  const parent = path === '' ? undefined : valueAt(input, path.slice(0, path.lastIndexOf('/')));
  return (path === '' || isPlainObject(parent)) && valueAt(input, path) !== undefined;
}
