/**
 * Reduces the errors of failed unions to those of the branch that the author meant: the one whose discriminator the
 * value has, else the only one for its type, else the one with the most keys in common. If none is clearly meant, one
 * error lists what is allowed. Ranking branches costs at most `work.left` schemas and keys; unions beyond it get the
 * list.
 */
import type { ErrorObject } from 'ajv';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { extendPointer, isPlainObject } from '../core/json/values.ts';
import {
  allowedIn,
  type ChooseBranches,
  createPlaces,
  type FollowRef,
  isOfType,
  listOf,
  namesIn,
  partsOf,
  rateKeys,
  requiredIn,
  typesIn,
  unionKeywords,
} from '../core/repair/schema-walk.ts';

/** Schemas and keys that are looked at to choose branches, for one value. */
const unionWork = 50_000;
/** Errors that are looked at; a check of a large list may find more. */
const mostErrors = 5_000;
const mostListed = 6;

interface Branch {
  readonly schema: JsonObject;
  readonly parts: readonly JsonObject[];
}

interface Choice {
  /** Null when no branch is clearly meant. */
  readonly branch: JsonObject | null;
  /** The property whose value decides, and its values, when the value has none of them. */
  readonly discriminator: { readonly key: string; readonly values: readonly Json[] } | null;
  readonly branches: readonly Branch[];
}

export interface UnionInput {
  /** The same object that ajv compiled: errors are found again by the identity of their schemas. */
  readonly schema: JsonObject;
  readonly value: Json;
  readonly errors: readonly ErrorObject[];
}

/** @param work units left; reduced by what is used */
export function reduceUnions(
  { schema, value, errors }: UnionInput,
  work: { left: number } = { left: unionWork },
): readonly ErrorObject[] {
  if (!errors.some(isUnion)) return errors;
  const choices = createChoices(work);
  const places = createPlaces(schema, value, choices.follow);
  const known = new Map<string, ReadonlySet<unknown>>();
  const applies = ({ instancePath, parentSchema }: ErrorObject): boolean => {
    if (!known.has(instancePath)) known.set(instancePath, new Set(places.at(instancePath)?.schemas));
    return known.get(instancePath)?.has(parentSchema) === true;
  };
  const seen = errors.length > mostErrors ? errors.slice(-mostErrors) : errors;
  const failed = new Set(seen.filter(isUnion).map(({ instancePath }) => instancePath));
  const kept = seen.filter((error) => applies(error) || !isWithin(error.instancePath, failed));
  const reduced = kept.flatMap((error) => {
    if (!isUnion(error)) return [error];
    const choice = choices.of(error);
    const isExplained = choice?.branch != null && kept.some((one) => one !== error && explains(one, error));
    return isExplained ? [] : [toError(error, choice)];
  });
  return reduced.length > 0 ? reduced : errors;
}

function isUnion({ keyword }: ErrorObject): boolean {
  return keyword === 'anyOf' || keyword === 'oneOf';
}

function explains(one: ErrorObject, union: ErrorObject): boolean {
  const { instancePath } = union;
  const isInside = one.instancePath === instancePath || one.instancePath.startsWith(`${instancePath}/`);
  return isInside && one.parentSchema !== union.parentSchema;
}

/** Whether a place or a container of it is among these. */
function isWithin(pointer: string, places: ReadonlySet<string>): boolean {
  if (places.has(pointer)) return true;
  for (let end = pointer.lastIndexOf('/'); end >= 0; end = pointer.lastIndexOf('/', end - 1)) {
    if (places.has(pointer.slice(0, end))) return true;
    if (end === 0) break;
  }
  return false;
}

interface Choices {
  readonly follow: ChooseBranches;
  readonly of: (error: ErrorObject) => Choice | undefined;
}

/** Chooses once for each union and value. */
function createChoices(work: { left: number }): Choices {
  const known = new Map<unknown, Map<unknown, Choice>>();
  const follow: ChooseBranches = (resolve, schema, value) =>
    unionKeywords.flatMap((keyword) => {
      const branches = schema[keyword];
      if (branches === undefined || value === undefined) return [];
      const ofUnion = known.get(branches) ?? new Map<unknown, Choice>();
      known.set(branches, ofUnion);
      const choice = ofUnion.get(value) ?? choose(resolve, { branches: listOf(branches), value, work });
      ofUnion.set(value, choice);
      return choice.branch === null ? [] : [choice.branch];
    });
  const of = ({ keyword, parentSchema, data, params }: ErrorObject): Choice | undefined => {
    const choice = known.get(parentSchema?.[keyword])?.get(data);
    return params.passingSchemas == null ? choice : undefined;
  };
  return { follow, of };
}

interface Question {
  readonly branches: readonly Json[];
  readonly value: Json;
  readonly work: { left: number };
}

function choose(resolve: FollowRef, { branches, value, work }: Question): Choice {
  const looked: Branch[] = [];
  for (const schema of branches.filter(isPlainObject)) {
    const branch = { schema, parts: work.left > 0 ? partsOf(resolve, schema) : [schema] };
    looked.push(branch);
    work.left -= branch.parts.length + namesIn(branch.parts).length;
    if (work.left <= 0) return { branch: null, discriminator: null, branches: looked };
  }
  const typed = looked.filter(({ parts }) => fitsType(parts, value));
  const none = { branch: null, discriminator: null, branches: looked };
  if (typed.length === 1) return { ...none, branch: typed[0]?.schema ?? null };
  if (!isPlainObject(value)) return none;
  return chooseObject(typed, value, none);
}

function fitsType(parts: readonly JsonObject[], value: Json): boolean {
  const constants = allowedIn(parts);
  if (parts.every((part) => typesIn(part).length === 0) && constants.length > 0) {
    return constants.some((one) => kindOf(one) === kindOf(value));
  }
  return parts.every((part) => {
    const types = typesIn(part);
    return types.length === 0 || types.some((type) => isOfType(value, type));
  });
}

function kindOf(value: Json): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
}

function chooseObject(branches: readonly Branch[], value: JsonObject, none: Choice): Choice {
  const key = findDiscriminator(branches).find((name) => Object.hasOwn(value, name));
  const matching =
    key === undefined ? branches : branches.filter((one) => onlyValueIn(one, key) === value[key]);
  if (key !== undefined && matching.length === 0) {
    const values = branches.map((one) => onlyValueIn(one, key)).filter((one) => one !== undefined);
    return { ...none, discriminator: { key, values: [...new Set(values)] } };
  }
  const rated = matching.map(({ schema, parts }) => {
    const names = new Set(namesIn(parts));
    const hasCommon = Object.keys(value).some((name) => names.has(name));
    return { schema, hasCommon, rate: rateKeys(names, parts, value) };
  });
  const most = rated.reduce((highest, { rate }) => Math.max(highest, rate), Number.NEGATIVE_INFINITY);
  const best = rated.filter(({ rate }) => rate === most);
  const isClear = best.length === 1 && (matching.length === 1 || best[0]?.hasCommon === true);
  return isClear ? { ...none, branch: best[0]?.schema ?? null } : none;
}

/** Keys that have a single value in every branch, and not the same in all. */
function findDiscriminator(branches: readonly Branch[]): readonly string[] {
  const [first] = branches;
  if (first === undefined) return [];
  return namesIn(first.parts).filter((name) => {
    const values = branches.map((one) => onlyValueIn(one, name));
    return values.every((one) => one !== undefined) && new Set(values).size > 1;
  });
}

function onlyValueIn({ parts }: Branch, key: string): Json | undefined {
  for (const { properties } of parts) {
    if (!isPlainObject(properties) || !Object.hasOwn(properties, key)) continue;
    const schema = properties[key];
    const allowed = isPlainObject(schema) ? allowedIn([schema]) : [];
    if (allowed.length === 1) return allowed[0];
  }
  return undefined;
}

/** The one error of a union without a branch that is meant. */
function toError(error: ErrorObject, choice: Choice | undefined): ErrorObject {
  const passing: readonly number[] | null | undefined = error.params.passingSchemas;
  if (passing != null) {
    const [first = 0, second = 1] = passing;
    return {
      ...error,
      message: `must match only one branch, and matches branches ${first} and ${second} of oneOf`,
    };
  }
  if (choice === undefined) return error;
  const { discriminator, branches } = choice;
  if (discriminator !== null) {
    const { key, values } = discriminator;
    return {
      ...error,
      keyword: 'enum',
      instancePath: extendPointer(error.instancePath, key),
      params: { allowedValues: values },
      data: (error.data as JsonObject)[key],
    };
  }
  const constants = branches.map(({ parts }) => allowedIn(parts));
  if (constants.every((values) => values.length > 0)) {
    return { ...error, keyword: 'enum', params: { allowedValues: [...new Set(constants.flat())] } };
  }
  const forms = [...new Set(branches.map((branch) => describeBranch(branch, branches)))];
  const more = forms.length > mostListed ? ` and ${forms.length - mostListed} more` : '';
  return { ...error, message: `must be one of: ${forms.slice(0, mostListed).join(', ')}${more}` };
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'true or false',
  null: 'null',
  array: 'a list',
  object: 'an object',
};

function describeBranch(branch: Branch, all: readonly Branch[]): string {
  const { parts } = branch;
  const constants = allowedIn(parts);
  if (constants.length > 0)
    return constants
      .slice(0, 3)
      .map((one) => cut(JSON.stringify(one)))
      .join(' or ');
  const objects = all.filter((one) => namesIn(one.parts).length > 0);
  const [key] = objects.includes(branch) ? findDiscriminator(objects) : [];
  if (key !== undefined) {
    return `an object with ${cut(JSON.stringify(key))}: ${cut(JSON.stringify(onlyValueIn(branch, key)))}`;
  }
  const required = requiredIn(parts)
    .slice(0, 3)
    .map((name) => cut(JSON.stringify(name)));
  if (required.length > 0) return `an object with ${required.join(', ')}`;
  const types = [...new Set(parts.flatMap(typesIn))].map((type) => typeNames[String(type)] ?? 'a value');
  return types.length > 0 ? types.join(' or ') : 'a value of another form';
}

function cut(text = 'nothing'): string {
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}
