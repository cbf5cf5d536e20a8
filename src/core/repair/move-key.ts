/**
 * A key that stands in the wrong object: unknown where it is, required and missing at one other place, under the same
 * name. Where two objects hold it, or two lack it, nobody can say which is meant. The value stays as it is.
 */
import type { Json } from '../../contracts/primitives.ts';
import { isForbiddenName } from '../forbidden-names.ts';
import { extendPointer, splitPointer } from '../json-pointer.ts';
import { isList, isPlainObject } from '../json-type.ts';
import type { Broken, Candidate } from './candidate.ts';
import { valueAt } from './operation.ts';
import type { SchemaFinding } from './schema-finding.ts';
import { knowsKey, mayHold, schemasAt } from './schema-walk.ts';

/** An input with more objects than this is not searched. */
const mostObjects = 2_000;
const deepest = 50;

export function moveKeys(broken: Broken, findings: readonly SchemaFinding[]): readonly Candidate[] {
  const missing = findings.filter(({ keyword }) => keyword === 'required' || keyword === 'dependentRequired');
  const pointers = [...new Set(missing.map(({ pointer }) => pointer))];
  return pointers.flatMap((to) => {
    const name = nameOf(to);
    const isOnly = pointers.every((other) => other === to || nameOf(other) !== name);
    return name === undefined || !isOnly || isForbiddenName(name) ? [] : moveTo(broken, to, name);
  });
}

function nameOf(pointer: string): string | undefined {
  return splitPointer(pointer).at(-1);
}

function moveTo({ schema, input }: Broken, to: string, name: string): readonly Candidate[] {
  const holders = findHolders(input, name);
  const strays = (holders ?? [])
    .map((pointer) => extendPointer(pointer, name))
    .filter((pointer) => pointer !== to && isStray({ schema, input }, pointer));
  const [from] = strays;
  const value = from === undefined ? undefined : valueAt(input, from);
  if (from === undefined || value === undefined || strays.length > 1) return [];
  if (!mayHold(schemasAt(schema, to), value) || !isPlainObject(valueAt(input, parentOf(to)) ?? null))
    return [];
  return [
    {
      kind: 'move',
      pointer: from,
      operations: [{ op: 'move', from, path: to }],
      description: `move ${from}, which is not known there, to ${to}, where it is missing`,
      change: { pointer: from, oldValue: value, newValue: value },
      isSure: true,
    },
  ];
}

function parentOf(pointer: string): string {
  return pointer.slice(0, pointer.lastIndexOf('/'));
}

/** Whether no schema of its object knows the key, by name or as one of many. */
function isStray({ schema }: Broken, pointer: string): boolean {
  const schemas = schemasAt(schema, parentOf(pointer));
  return schemas.length > 0 && !knowsKey(schemas, nameOf(pointer) ?? '');
}

/** Pointers of the objects that have the key; null where there are too many objects to say. */
function findHolders(input: Json, name: string): readonly string[] | null {
  const found: string[] = [];
  let seen = 0;
  const walk = (value: Json, pointer: string, depth: number): boolean => {
    if (value === null || typeof value !== 'object') return true;
    seen += 1;
    if (seen > mostObjects || depth > deepest) return false;
    if (!isList(value) && Object.hasOwn(value, name)) found.push(pointer);
    return Object.entries(value).every(([key, child]) => walk(child, extendPointer(pointer, key), depth + 1));
  };
  return walk(input, '', 0) ? found : null;
}
