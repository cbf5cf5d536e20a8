/** Reads and changes one place of a JSON document by its JSON Pointer, leaving the document itself as it is. */
import type { Json } from '../../../contracts/primitives.ts';
import { isForbiddenName } from '../../forbidden-names.ts';
import { splitPointer } from '../../json-pointer.ts';
import { isList, isPlainObject } from '../../json-type.ts';

const form = /^(?:\/(?:[^~/]|~[01])*)*$/;

/** @returns what is wrong with the text as a pointer, or null */
export function findPointerFault(pointer: string): string | null {
  if (!form.test(pointer)) return 'is no JSON Pointer: "" or /key/0, with ~0 for ~ and ~1 for /';
  const name = splitPointer(pointer).find(isForbiddenName);
  return name === undefined ? null : `holds the name ${name}, which is not allowed`;
}

const itemIndex = /^(?:0|[1-9][0-9]{0,14})$/;

function childOf(value: Json, segment: string): Json | undefined {
  if (isList(value)) return itemIndex.test(segment) ? value[Number(segment)] : undefined;
  return isPlainObject(value) && Object.hasOwn(value, segment) ? value[segment] : undefined;
}

/** Undefined when nothing stands there. */
export function valueAt(document: Json, pointer: string): Json | undefined {
  return splitPointer(pointer).reduce<Json | undefined>(
    (value, segment) => (value === undefined ? undefined : childOf(value, segment)),
    document,
  );
}

/** Changes a container at one of its keys; undefined when that place does not exist. */
type Change = (container: Json, segment: string) => Json | undefined;

function changeAt(document: Json, segments: readonly string[], change: Change): Json | undefined {
  const [segment = '', ...rest] = segments;
  if (rest.length === 0) return change(document, segment);
  const child = childOf(document, segment);
  const changed = child === undefined ? undefined : changeAt(child, rest, change);
  return changed === undefined ? undefined : replaceChild(document, segment, changed);
}

function replaceChild(container: Json, segment: string, value: Json): Json {
  return isList(container)
    ? container.with(Number(segment), value)
    : { ...(container as object), [segment]: value };
}

function insertChild(value: Json): Change {
  return (container, segment) => {
    if (isPlainObject(container)) return { ...container, [segment]: value };
    if (!isList(container)) return undefined;
    if (segment === '-') return [...container, value];
    const index = itemIndex.test(segment) ? Number(segment) : Number.NaN;
    return index <= container.length ? container.toSpliced(index, 0, value) : undefined;
  };
}

const dropChild: Change = (container, segment) => {
  if (childOf(container, segment) === undefined) return undefined;
  if (isList(container)) return container.toSpliced(Number(segment), 1);
  const { [segment]: _, ...rest } = container as Readonly<Record<string, Json>>;
  return rest;
};

/** Like `add` of RFC 6902; undefined when the parent does not exist or takes no such child. */
export function insertAt(document: Json, pointer: string, value: Json): Json | undefined {
  return pointer === '' ? value : changeAt(document, splitPointer(pointer), insertChild(value));
}

/** Undefined when nothing stands there; the whole document cannot be removed. */
export function removeAt(document: Json, pointer: string): Json | undefined {
  return pointer === '' ? undefined : changeAt(document, splitPointer(pointer), dropChild);
}

/** Undefined when nothing stands there. */
export function replaceAt(document: Json, pointer: string, value: Json): Json | undefined {
  if (valueAt(document, pointer) === undefined) return undefined;
  if (pointer === '') return value;
  return changeAt(document, splitPointer(pointer), (container, segment) =>
    replaceChild(container, segment, value),
  );
}
