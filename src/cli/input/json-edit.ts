/** Reads and changes one place of a JSON document, named by its JSON Pointer (RFC 6901). */
import type { Json } from '../../contracts/primitives.ts';
import { UsageError } from '../errors.ts';

const form = /^(?:\/(?:[^~/]|~[01])*)+$/;

/** @throws UsageError */
function readSegments(pointer: string): string[] {
  if (!form.test(pointer)) {
    throw new UsageError(`"${pointer}" is no place in the input; write /key or /list/0, with ~1 for /`);
  }
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function isObject(value: Json | undefined): value is Readonly<Record<string, Json>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function childOf(value: Json | undefined, segment: string): Json | undefined {
  if (Array.isArray(value)) return /^\d+$/.test(segment) ? value[Number(segment)] : undefined;
  return isObject(value) && Object.hasOwn(value, segment) ? value[segment] : undefined;
}

/** Undefined when nothing stands there. */
export function readPlace(document: Json | undefined, pointer: string): Json | undefined {
  return pointer === '' ? document : readSegments(pointer).reduce(childOf, document);
}

type Edit = { readonly set: Json } | 'remove';

function editList(list: readonly Json[], segment: string, edit: Edit): Json | null {
  const index = segment === '-' ? list.length : /^\d+$/.test(segment) ? Number(segment) : Number.NaN;
  if (edit === 'remove') return index < list.length ? list.toSpliced(index, 1) : null;
  return index <= list.length ? list.toSpliced(index, 1, edit.set) : null;
}

function editObject(object: Readonly<Record<string, Json>>, key: string, edit: Edit): Json | null {
  if (edit !== 'remove') return Object.fromEntries([...Object.entries(object), [key, edit.set]]);
  if (!Object.hasOwn(object, key)) return null;
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key));
}

function editAt(value: Json | undefined, [segment = '', ...rest]: string[], edit: Edit): Json | null {
  const inner = rest.length === 0 ? edit : editAt(childOf(value, segment), rest, edit);
  if (inner === null) return null;
  const change: Edit = rest.length === 0 ? edit : { set: inner as Json };
  if (Array.isArray(value)) return editList(value, segment, change);
  return isObject(value) ? editObject(value, segment, change) : null;
}

/** @throws UsageError when there is no such place */
export function editPlace(document: Json, pointer: string, edit: Edit): Json {
  const edited = editAt(document, readSegments(pointer), edit);
  if (edited === null) throw new UsageError(`the input has no place ${pointer}`);
  return edited;
}
