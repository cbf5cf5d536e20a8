/**
 * Which places of the document a patch has tested so far. A test on a place also covers what stands below it, until
 * an operation moves the items of its list.
 */
import { hasReference } from '../../expression/references.ts';
import { showPointer } from './json-patch.ts';
import type { TemplateOperation } from './template.ts';

export interface Guards {
  isGuarded(pointer: string): boolean;
  /** To be told every operation, in order. */
  note(operation: TemplateOperation): void;
}

export function createGuards(): Guards {
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

export function isDerivedOperation(operation: TemplateOperation): boolean {
  return 'value' in operation && hasReference(operation.value);
}

/** @returns what replaces or removes something without having looked at it, or null */
export function findUnguardedChange(
  operations: readonly TemplateOperation[],
  bounds: readonly string[],
): string | null {
  const guards = createGuards();
  const excepted = new Set(bounds);
  for (const operation of operations) {
    const { op, path } = operation;
    const isLiteral = op === 'remove' || (op === 'replace' && !isDerivedOperation(operation));
    if (isLiteral && !excepted.has(path) && !guards.isGuarded(path)) {
      return `${op} of ${showPointer(path)} needs a test on the old value before it`;
    }
    guards.note(operation);
  }
  return null;
}
