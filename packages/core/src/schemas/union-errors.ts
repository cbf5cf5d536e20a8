/**
 * Reduces the errors of failed unions to those of the branch that the author meant. If none is clearly meant, one error
 * lists what is allowed. Unions beyond the work that a value may cost get one line.
 */
import type { ErrorObject } from 'ajv';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { extendPointer } from '../json/values.ts';
import {
  allowedIn,
  type ChooseBranches,
  createPlaces,
  type FollowRef,
  type InputPlace,
  listOf,
  namesIn,
  requiredIn,
  typesIn,
  unionKeywords,
} from '../repair/schema-walk.ts';
import {
  type Branch,
  type BranchChoice,
  chooseBranch,
  type LookBudget,
  onlyValueIn,
  readUnion,
  type Union,
} from './union-choice.ts';

/** Schemas, keys and places that are looked at to choose branches, for one value. */
const unionWork = 50_000;
/** Errors that are looked at; a check of a large list may find more. */
const mostErrors = 5_000;
const mostListed = 6;

export interface UnionInput {
  /** The same object that ajv compiled: errors are found again by the identity of their schemas. */
  readonly schema: JsonObject;
  readonly value: Json;
  readonly errors: readonly ErrorObject[];
}

/** @param work units left; reduced by what is used */
export function reduceUnions(
  { schema, value, errors }: UnionInput,
  work: LookBudget = { left: unionWork },
): readonly ErrorObject[] {
  if (!errors.some(isUnion)) return errors;
  const choices = createChoices(work);
  const schemasAt = createLookup({ schema, value, follow: choices.follow, work });
  const seen = errors.length > mostErrors ? errors.slice(-mostErrors) : errors;
  const failed = new Set(seen.filter(isUnion).map(({ instancePath }) => instancePath));
  const kept = seen.filter(
    ({ instancePath, parentSchema }) =>
      schemasAt(instancePath).has(parentSchema) || !isWithin(instancePath, failed),
  );
  const sources = sourcesByPlace(kept);
  const reduced = kept.flatMap((error) => {
    if (!isUnion(error)) return [error];
    const isExplained = (sources.get(error.instancePath)?.size ?? 0) > 1;
    return isExplained && choices.isMeant(error) ? [] : [choices.explain(error)];
  });
  return [...reduced, ...untold(seen.filter(isUnion), reduced)];
}

function isUnion({ keyword }: ErrorObject): boolean {
  return keyword === 'anyOf' || keyword === 'oneOf';
}

/** A place and its containers, the innermost first. */
function withContainers(pointer: string): readonly string[] {
  const places = [pointer];
  for (let end = pointer.lastIndexOf('/'); end >= 0; end = pointer.lastIndexOf('/', end - 1)) {
    places.push(pointer.slice(0, end));
    if (end === 0) break;
  }
  return places;
}

function isWithin(pointer: string, places: ReadonlySet<string>): boolean {
  return withContainers(pointer).some((one) => places.has(one));
}

/** For each place, the schemas that have errors at it or inside it. */
function sourcesByPlace(errors: readonly ErrorObject[]): ReadonlyMap<string, ReadonlySet<unknown>> {
  const found = new Map<string, Set<unknown>>();
  for (const { instancePath, parentSchema } of errors) {
    for (const place of withContainers(instancePath)) {
      const sources = found.get(place) ?? new Set();
      found.set(place, sources.add(parentSchema));
    }
  }
  return found;
}

/** One line for each failed union without a finding: the walk ended before it. */
function untold(unions: readonly ErrorObject[], told: readonly ErrorObject[]): readonly ErrorObject[] {
  const known = new Set(told.flatMap(({ instancePath }) => withContainers(instancePath)));
  const lines: ErrorObject[] = [];
  for (const union of [...unions].sort((a, b) => a.instancePath.length - b.instancePath.length)) {
    if (isWithin(union.instancePath, known)) continue;
    known.add(union.instancePath);
    lines.push(inGeneral(union));
  }
  return lines;
}

interface Walk {
  readonly schema: JsonObject;
  readonly value: Json;
  readonly follow: ChooseBranches;
  readonly work: LookBudget;
}

/** @returns a function that finds the schemas that apply at a place; none when the work is used up */
function createLookup({ schema, value, follow, work }: Walk): (pointer: string) => ReadonlySet<unknown> {
  const places = createPlaces(schema, value, follow);
  const counted = new Set<InputPlace>();
  const known = new Map<string, ReadonlySet<unknown>>();
  return (pointer) => {
    const found = known.get(pointer);
    if (found !== undefined) return found;
    const place = work.left > 0 ? places.at(pointer) : undefined;
    for (let one = place ?? null; one !== null && !counted.has(one); one = one.parent) {
      counted.add(one);
      work.left -= one.schemas.length;
    }
    const schemas = new Set<unknown>(place?.schemas);
    known.set(pointer, schemas);
    return schemas;
  };
}

interface Choices {
  readonly follow: ChooseBranches;
  /** Whether a branch is meant. */
  readonly isMeant: (error: ErrorObject) => boolean;
  /** The one error of a union without a branch that is meant. */
  readonly explain: (error: ErrorObject) => ErrorObject;
}

/** A union with the choices for its values, and its one error. */
interface KnownUnion {
  readonly union: Union | null;
  readonly choices: Map<unknown, BranchChoice | null>;
  readonly told: Partial<ErrorObject>;
}

/** Reads each union once, and chooses once for each of its values. */
function createChoices(work: LookBudget): Choices {
  const known = new Map<unknown, KnownUnion>();
  const read = (resolve: FollowRef, list: Json): KnownUnion => {
    const union = readUnion(resolve, listOf(list), work);
    return { union, choices: new Map(), told: union === null ? {} : describeUnion(union) };
  };
  const follow: ChooseBranches = (resolve, schema, value) =>
    unionKeywords.flatMap((keyword) => {
      work.left -= 1;
      const list = schema[keyword];
      if (list === undefined || value === undefined) return [];
      const one = known.get(list) ?? read(resolve, list);
      known.set(list, one);
      if (!one.choices.has(value)) {
        one.choices.set(value, one.union && chooseBranch(one.union, value, work));
      }
      const branch = one.choices.get(value)?.branch ?? null;
      return branch === null ? [] : [branch];
    });
  const find = ({ keyword, parentSchema, data }: ErrorObject) => {
    const one = known.get(parentSchema?.[keyword]);
    return { union: one?.union, told: one?.told, choice: one?.choices.get(data) };
  };
  return {
    follow,
    isMeant: (error) => error.params.passingSchemas == null && find(error).choice?.branch != null,
    explain: (error) => {
      const { union, told, choice } = find(error);
      if (union == null || choice == null) return inGeneral(error);
      if (error.params.passingSchemas != null) return toAmbiguous(error, union);
      return choice.discriminator === null
        ? { ...error, ...told }
        : toDiscriminator(error, choice.discriminator);
    },
  };
}

function inGeneral(error: ErrorObject): ErrorObject {
  const count = listOf(error.parentSchema?.[error.keyword]).length;
  const only = error.params.passingSchemas == null ? '' : 'only ';
  return { ...error, message: `must match ${only}one of ${count} forms` };
}

function toDiscriminator(
  error: ErrorObject,
  { key, values }: NonNullable<BranchChoice['discriminator']>,
): ErrorObject {
  return {
    ...error,
    keyword: 'enum',
    instancePath: extendPointer(error.instancePath, key),
    params: { allowedValues: values },
    data: (error.data as JsonObject)[key],
  };
}

/** The error of a value that matches two branches of a `oneOf`. */
function toAmbiguous(error: ErrorObject, union: Union): ErrorObject {
  const passing: readonly number[] = error.params.passingSchemas;
  const list = listOf(error.parentSchema?.[error.keyword]);
  const names = passing.map((at) =>
    nameBranch(
      union.branches.find(({ schema }) => schema === list[at]),
      union,
    ),
  );
  const isClear = !names.includes(otherForm) && new Set(names).size === names.length;
  const matched = isClear
    ? `both ${names.join(' and ')}`
    : `branches ${passing.map((at) => at + 1).join(' and ')} of ${list.length}`;
  return { ...error, message: `must match only one form, and matches ${matched}` };
}

function nameBranch(branch: Branch | undefined, union: Union): string {
  if (branch === undefined) return otherForm;
  const title = branch.parts.map((part) => part.title).find((one) => typeof one === 'string' && one !== '');
  return title === undefined ? describeBranch(branch, union) : cut(JSON.stringify(title));
}

function describeUnion(union: Union): Partial<ErrorObject> {
  const { branches } = union;
  const constants = branches.map(({ parts }) => allowedIn(parts));
  if (constants.every((values) => values.length > 0)) {
    return { keyword: 'enum', params: { allowedValues: [...new Set(constants.flat())] } };
  }
  const forms = branches.slice(0, mostListed).map((branch) => describeBranch(branch, union));
  const more = branches.length > mostListed ? ` and ${branches.length - mostListed} more` : '';
  return { message: `must be one of: ${[...new Set(forms)].join(', ')}${more}` };
}

const otherForm = 'a value of another form';

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  null: 'null',
  array: 'a list',
  object: 'an object',
};

function describeBranch(branch: Branch, { objects, keys: [key] }: Union): string {
  const { parts } = branch;
  const constants = allowedIn(parts);
  if (constants.length > 0) return quote(constants).join(' or ');
  if (key !== undefined && namesIn(parts).includes(key) && objects.includes(branch)) {
    return `an object with ${quote([key, onlyValueIn(branch, key)]).join(': ')}`;
  }
  const required = requiredIn(parts);
  if (required.length > 0) return `an object with ${quote(required).join(', ')}`;
  const types = [...new Set(parts.flatMap(typesIn))].map((type) => typeNames[String(type)] ?? 'a value');
  return types.length > 0 ? types.join(' or ') : otherForm;
}

function quote(values: readonly (Json | undefined)[]): readonly string[] {
  return values.slice(0, 3).map((one) => cut(JSON.stringify(one)));
}

function cut(text = 'nothing'): string {
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}
