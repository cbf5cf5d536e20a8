/**
 * The faults of a file whose keys are all known, in words for its author: unknown keys with those that are allowed at
 * their place, and of a union the branch that the author meant.
 */
import { z } from 'zod';
import type { Json } from '../contracts/primitives.ts';
import { extendPointer, isForbiddenName, isList, isPlainObject } from '../json/values.ts';
import { createNameSuggester, describeUnknownKey } from '../nearest-name.ts';
import { readShapeIssue, type UnplacedFinding, wordShape } from './findings.ts';
import type { SourceNode } from './source/source-node.ts';

interface StrictSource {
  readonly root: SourceNode;
  readonly text: string;
}

type StrictIssue = z.core.$ZodIssue;

/** The keys that are allowed at a path. */
function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault)
    return knownKeys(schema.unwrap() as z.ZodType, path);
  if (schema instanceof z.ZodUnion)
    return schema.options.flatMap((option) => knownKeys(option as z.ZodType, path));
  const [key, ...rest] = path;
  if (schema instanceof z.ZodObject) {
    if (key === undefined) return Object.keys(schema.shape);
    const inner: unknown = Reflect.get(schema.shape, key);
    return inner === undefined ? [] : knownKeys(inner as z.ZodType, rest);
  }
  if (key === undefined) return [];
  if (schema instanceof z.ZodRecord) return knownKeys(schema.valueType as z.ZodType, rest);
  return schema instanceof z.ZodArray ? knownKeys(schema.element as z.ZodType, rest) : [];
}

/** The issues of the branch that was meant: the one with the fewest faults that is no fault of the type itself. */
function innerIssues(issue: StrictIssue): readonly StrictIssue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const branches = issue.errors.filter((errors) =>
    errors.some(({ path, code }) => path.length > 0 || code === 'unrecognized_keys'),
  );
  const [meant] = branches.toSorted((a, b) => a.length - b.length);
  return (meant ?? []).length === 0
    ? [issue]
    : (meant ?? []).map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }));
}

function describeIssue(
  issue: StrictIssue,
  schema: z.ZodType,
  { root, text }: StrictSource,
): UnplacedFinding[] {
  if (issue.code !== 'unrecognized_keys') {
    return readShapeIssue(issue, root, text).map((fault) => ({ severity: 'error', ...fault }));
  }
  const known = [...new Set(knownKeys(schema, issue.path))];
  const suggest = createNameSuggester(known);
  return issue.keys.map((key) => ({
    severity: 'error',
    code: 'key_unknown',
    pointer: extendPointer('', ...issue.path.map(String), key),
    message: describeUnknownKey(key, known),
    suggestion: suggest(key),
  }));
}

/** JavaScript takes such a key for the prototype of an object, and the contract's parser leaves it out. */
function findForbiddenKeys(value: Json, pointer = ''): UnplacedFinding[] {
  if (!isPlainObject(value) && !isList(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const below = extendPointer(pointer, key);
    const found = findForbiddenKeys(inner, below);
    if (!isForbiddenName(key)) return found;
    const message = `the key ${key} is not allowed`;
    return [{ severity: 'error', code: 'name_forbidden', pointer: below, message }, ...found];
  });
}

type StrictReading<Data> = { readonly data: Data } | { readonly faults: UnplacedFinding[] };

/** @param schema made of strict objects */
export function readStrict<Schema extends z.ZodType>(
  schema: Schema,
  value: Json,
  source: StrictSource,
): StrictReading<z.output<Schema>> {
  const forbidden = findForbiddenKeys(value);
  const parsed = schema.safeParse(value, { error: wordShape });
  if (parsed.success) return forbidden.length === 0 ? { data: parsed.data } : { faults: forbidden };
  const issues = parsed.error.issues.flatMap(innerIssues);
  return { faults: [...forbidden, ...issues.flatMap((issue) => describeIssue(issue, schema, source))] };
}
