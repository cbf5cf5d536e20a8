/** Reads and changes one place of a JSON document, named by its JSON Pointer. */
import type { Json } from '../../contracts/primitives.ts';
import { applyPatch, findPointerFault, type PatchOperation, valueAt } from '../../core/json/patch.ts';
import { UsageError } from '../errors.ts';

function noPlace(pointer: string): UsageError {
  return new UsageError(`"${pointer}" is no place in the input; write /key or /list/0, with ~1 for /`);
}

/** Undefined when nothing stands there. @throws UsageError */
export function readPlace(document: Json | undefined, pointer: string): Json | undefined {
  if (findPointerFault(pointer) !== null) throw noPlace(pointer);
  return document === undefined ? undefined : valueAt(document, pointer);
}

type Edit = { readonly set: Json } | 'remove';

function toOperation(document: Json, path: string, edit: Edit): PatchOperation {
  if (edit === 'remove') return { op: 'remove', path };
  const op = valueAt(document, path) === undefined ? 'add' : 'replace';
  return { op, path, value: edit.set };
}

/** @throws UsageError when there is no such place inside the document */
export function editPlace(document: Json, pointer: string, edit: Edit): Json {
  if (pointer === '' || findPointerFault(pointer) !== null) throw noPlace(pointer);
  const edited = applyPatch(document, [toOperation(document, pointer, edit)]);
  if (!edited.ok) throw new UsageError(`the input has no place ${pointer}`);
  return edited.value;
}
