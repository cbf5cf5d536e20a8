/**
 * Chooses the branch of a union that the author of a value meant: the branch whose discriminator the value has, else
 * the only one for its type, else the one with the most keys in common. All schemas, keys and values that are looked at
 * count as work; without work left, nothing is chosen.
 */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { isPlainObject } from '../json/values.ts';
import {
  allowedIn,
  type FollowRef,
  isOfType,
  keysOf,
  listOf,
  namesIn,
  partsOf,
  rateKeys,
  typesIn,
} from '../repair/schema-walk.ts';

/** Units left; reduced by what is used. */
export interface LookBudget {
  left: number;
}

export interface Branch {
  readonly schema: JsonObject;
  /** The schema and those that hold with it. */
  readonly parts: readonly JsonObject[];
}

/** What is the same for all values of a union. */
export interface Union {
  readonly branches: readonly Branch[];
  /** Branches that an object may be meant for. */
  readonly objects: readonly Branch[];
  /** Keys that have a single value in each of these, and not the same in all. */
  readonly keys: readonly string[];
  /** Units of one look at all branches. */
  readonly weight: number;
}

export interface BranchChoice {
  /** Null when no branch is clearly meant. */
  readonly branch: JsonObject | null;
  /** The property whose value decides, and its values, when the value has none of them. */
  readonly discriminator: { readonly key: string; readonly values: readonly Json[] } | null;
}

/** @returns null when the work is used up */
export function readUnion(resolve: FollowRef, list: readonly Json[], work: LookBudget): Union | null {
  const branches: Branch[] = [];
  const before = work.left;
  for (const schema of list) {
    if (work.left <= 0) return null;
    work.left -= 1;
    if (!isPlainObject(schema)) continue;
    const parts = partsOf(resolve, schema);
    branches.push({ schema, parts });
    work.left -= parts.reduce((sum, part) => sum + weigh(part), 0);
  }
  const weight = before - work.left;
  const objects = branches.filter(({ parts }) => fitsType(parts, {}));
  const keys = findDiscriminators(objects, work);
  return work.left > 0 ? { branches, objects, keys, weight } : null;
}

function weigh({ properties = null, required, allOf, enum: allowed }: JsonObject): number {
  const lists = [required, allOf, allowed].map((list) => listOf(list).length);
  return lists.reduce((sum, length) => sum + length, keysOf(properties).length + 1);
}

function findDiscriminators(branches: readonly Branch[], work: LookBudget): readonly string[] {
  const [first] = branches;
  if (first === undefined) return [];
  return namesIn(first.parts).filter((name) => {
    const value = onlyValueIn(first, name);
    if (value === undefined) return false;
    const isSingle = branches.every((one) => spend(work, one) && onlyValueIn(one, name) !== undefined);
    return isSingle && branches.some((one) => spend(work, one) && onlyValueIn(one, name) !== value);
  });
}

function spend(work: LookBudget, { parts }: Branch): boolean {
  work.left -= parts.length;
  return work.left > 0;
}

export function onlyValueIn({ parts }: Branch, key: string): Json | undefined {
  for (const { properties } of parts) {
    if (!isPlainObject(properties) || !Object.hasOwn(properties, key)) continue;
    const schema = properties[key];
    const allowed = isPlainObject(schema) ? allowedIn([schema]) : [];
    if (allowed.length === 1) return allowed[0];
  }
  return undefined;
}

/** @returns null when the work is used up */
export function chooseBranch(union: Union, value: Json, work: LookBudget): BranchChoice | null {
  if (work.left <= 0) return null;
  work.left -= union.weight;
  if (isPlainObject(value)) return chooseObject(union, value, work);
  const typed = union.branches.filter(({ parts }) => fitsType(parts, value));
  return choiceOf(typed.length === 1 ? typed[0] : undefined);
}

function choiceOf(branch: Branch | undefined): BranchChoice {
  return { branch: branch?.schema ?? null, discriminator: null };
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

function chooseObject({ objects, keys }: Union, value: JsonObject, work: LookBudget): BranchChoice | null {
  if (objects.length === 1) return choiceOf(objects[0]);
  const key = keys.find((name) => Object.hasOwn(value, name));
  const matching =
    key === undefined ? objects : objects.filter((one) => onlyValueIn(one, key) === value[key]);
  if (key !== undefined && matching.length === 0) {
    const values = objects.map((one) => onlyValueIn(one, key)).filter((one) => one !== undefined);
    return { branch: null, discriminator: { key, values: [...new Set(values)] } };
  }
  work.left -= matching.length * Object.keys(value).length;
  return work.left > 0 ? choiceOf(findNearest(matching, value)) : null;
}

/** The branch with the most keys in common, if it is the only one. */
function findNearest(branches: readonly Branch[], value: JsonObject): Branch | undefined {
  if (branches.length === 1) return branches[0];
  const rated = branches.map((branch) => {
    const names = new Set(namesIn(branch.parts));
    const hasCommon = Object.keys(value).some((name) => names.has(name));
    return { branch, hasCommon, rate: rateKeys(names, branch.parts, value) };
  });
  const most = rated.reduce((highest, { rate }) => Math.max(highest, rate), Number.NEGATIVE_INFINITY);
  const best = rated.filter(({ rate }) => rate === most);
  return best.length === 1 && best[0]?.hasCommon === true ? best[0].branch : undefined;
}
