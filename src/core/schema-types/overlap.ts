/**
 * Whether two types have a value in common. `none` is certain; `some` is not: types are wider than what they stand for,
 * and deep ones are not looked through to their end.
 */
import { kinds, type ListType, type ObjectType, type ValueType } from './value-type.ts';

/** `only_empty`: nothing but lists without items. */
export type Overlap = 'none' | 'only_empty' | 'some';

/** What may still be looked at; shared by all comparisons of a definition. */
export interface Effort {
  left: number;
}

const deepest = 6;
/** Items of a list that are compared one by one. */
const comparedItems = 8;

export function overlapOf(a: ValueType, b: ValueType, effort: Effort, depth = 0): Overlap {
  effort.left -= 1;
  if (a === b && a.kinds !== 0) return 'some';
  const common = a.kinds & b.kinds;
  if ((common & (kinds.null | kinds.true | kinds.false)) !== 0) return 'some';
  if ((common & kinds.string) !== 0 && haveCommonString(a, b)) return 'some';
  if ((common & kinds.number) !== 0 && haveCommonNumber(a, b)) return 'some';
  if ((common & (kinds.list | kinds.object)) === 0) return 'none';
  if (depth >= deepest || effort.left < 0) return 'some';
  const lists = (common & kinds.list) === 0 ? 'none' : compareLists(a.list, b.list, effort, depth + 1);
  if (lists === 'some') return lists;
  const objects =
    (common & kinds.object) === 0 ? 'none' : compareObjects(a.object, b.object, effort, depth + 1);
  return objects === 'none' ? lists : objects;
}

function haveCommonString(a: ValueType, b: ValueType): boolean {
  return haveCommon(a.strings, b.strings);
}

function haveCommonNumber(a: ValueType, b: ValueType): boolean {
  const isAllowed = (value: number): boolean => !(a.isInteger || b.isInteger) || Number.isInteger(value);
  const known = [...(a.numbers ?? b.numbers ?? [])];
  if (a.numbers === null && b.numbers === null) return true;
  return known.some((value) => isAllowed(value) && (b.numbers === null || b.numbers.has(value)));
}

function haveCommon<Value>(a: ReadonlySet<Value> | null, b: ReadonlySet<Value> | null): boolean {
  if (a === null || b === null) return (a ?? b)?.size !== 0;
  return [...a].some((value) => b.has(value));
}

function compareLists(a: ListType, b: ListType, effort: Effort, depth: number): Overlap {
  const least = Math.max(a.least, b.least);
  const most = Math.min(a.most, b.most);
  if (least > most) return 'none';
  if (most === 0) return 'some';
  let worst: Overlap = 'some';
  for (let index = 0; index < Math.min(Math.max(1, least), comparedItems); index++) {
    const items = overlapOf(a.item(index), b.item(index), effort, depth);
    if (items === 'none') return least === 0 ? 'only_empty' : 'none';
    if (items === 'only_empty') worst = items;
  }
  return worst;
}

function compareObjects(a: ObjectType, b: ObjectType, effort: Effort, depth: number): Overlap {
  let worst: Overlap = 'some';
  for (const name of new Set([...a.required, ...b.required])) {
    const [own, other] = [a.property(name), b.property(name)];
    if (own.presence === 'never' || other.presence === 'never') return 'none';
    const values = overlapOf(own.type, other.type, effort, depth);
    if (values === 'none') return values;
    if (values === 'only_empty') worst = values;
  }
  return worst;
}
