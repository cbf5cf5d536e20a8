/** Filters of lists and objects. Each charges the items that it reads and the characters that it compares. */
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { canonicalJson, isList, isPlainObject } from '../json/values.ts';
import { compareValues } from './compare.ts';
import {
  describeIn,
  type ExpressionFilter,
  evaluationError,
  type FilterInput,
  formatJson,
  found,
  missing,
  type Outcome,
  refuseValue,
  spend,
  spendRead,
  spendValues,
} from './evaluation.ts';
import { charges } from './meter.ts';

/** A list of which every item is looked at. */
function readList(input: FilterInput, filter: string): readonly Json[] {
  if (!isList(input.value)) throw refuseValue(input, `${filter} takes a list`);
  spendValues(input.evaluation, input.value.length);
  return input.value;
}

/** A list whose items are moved as they are. */
function moveList(input: FilterInput, filter: string): readonly Json[] {
  if (!isList(input.value)) throw refuseValue(input, `${filter} takes a list`);
  spend(input.evaluation, input.value.length * charges.move);
  return input.value;
}

function refuseItem({ evaluation }: FilterInput, rule: string, [index, item]: readonly [number, Json]) {
  return evaluationError(evaluation, `${rule}; item ${index} is ${describeIn(evaluation, item)}`);
}

/** The field of an item. An item that is null, such as one with a tolerated failure, has none. */
function fieldOf(
  input: FilterInput,
  filter: string,
  [index, item]: readonly [number, Json],
): Json | undefined {
  const { argument } = input;
  if (item === null || typeof argument !== 'string') return undefined;
  if (!isPlainObject(item)) throw refuseItem(input, `${filter} takes a list of objects`, [index, item]);
  return Object.hasOwn(item, argument) ? item[argument] : undefined;
}

function mapItems(input: FilterInput): Outcome {
  const values: Json[] = [];
  for (const [index, item] of readList(input, 'map').entries()) {
    const value = item === null ? null : fieldOf(input, 'map', [index, item]);
    if (value === undefined)
      return missing(() => ({ message: `item ${index} has no field ${JSON.stringify(input.argument)}` }));
    values.push(value);
  }
  return found(values);
}

const ordering: ReadonlySet<string> = new Set(['<', '<=', '>', '>=']);

function selectItems(input: FilterInput): Outcome {
  const { operator = '==', evaluation } = input;
  const [right = null] = input.values;
  return found(
    readList(input, 'where').filter((item, index) => {
      const left = fieldOf(input, 'where', [index, item]) ?? null;
      if (left === null && ordering.has(operator)) return false;
      return compareValues({ left, operator, right }, evaluation);
    }),
  );
}

function concatenate(input: FilterInput): Outcome {
  const [other = null] = input.values;
  const first = moveList(input, 'concat');
  if (!isList(other))
    throw evaluationError(input.evaluation, `concat adds a list, not ${describeIn(input.evaluation, other)}`);
  spend(input.evaluation, other.length * charges.move);
  return found(first.concat(other));
}

/** A whole number; a negative one counts from the end. */
function readPlace({ evaluation }: FilterInput, value: Json | undefined): number {
  if (typeof value === 'number' && Number.isInteger(value)) return value;
  throw evaluationError(
    evaluation,
    `slice takes two whole numbers, not ${describeIn(evaluation, value ?? null)}`,
  );
}

/** Whether a text would be cut inside a character that has two units. */
function isInsidePair(text: string, at: number): boolean {
  return at > 0 && at < text.length && (text.codePointAt(at - 1) ?? 0) > 0xffff;
}

function slice(input: FilterInput): Outcome {
  const [start, end] = [readPlace(input, input.values[0]), readPlace(input, input.values[1])];
  const { value } = input;
  if (isList(value)) {
    spend(input.evaluation, value.length * charges.move);
    return found(value.slice(start, end));
  }
  if (typeof value !== 'string') throw refuseValue(input, 'slice takes a list or a string');
  spendRead(input.evaluation, value.length);
  const placed = (at: number): number => {
    const place = Math.min(value.length, at < 0 ? Math.max(0, value.length + at) : at);
    return isInsidePair(value, place) ? place - 1 : place;
  };
  return found(value.slice(placed(start), placed(end)));
}

function uniqueItems(input: FilterInput): Outcome {
  const known = new Map<string, Json>();
  for (const item of readList(input, 'unique')) {
    formatJson(item, input.evaluation); // charges it, and bounds its depth
    const text = canonicalJson(item);
    spend(input.evaluation, Math.ceil(text.length / charges.charactersEscaped));
    if (!known.has(text)) known.set(text, item);
  }
  return found([...known.values()]);
}

function flatten(input: FilterInput): Outcome {
  return found(
    readList(input, 'flatten').flatMap((item) => {
      if (isList(item)) spend(input.evaluation, item.length * charges.flattened);
      return item;
    }),
  );
}

type Sortable = string | number;

/** @throws ExpressionError unless all are numbers, or all are strings */
function requireSortable(
  input: FilterInput,
  rule: string,
  keys: readonly (Json | undefined)[],
): readonly Sortable[] {
  const kind = typeof keys[0];
  for (const [index, key] of keys.entries()) {
    if (typeof key !== kind || (kind !== 'number' && kind !== 'string'))
      throw refuseItem(input, rule, [index, key ?? null]);
  }
  return keys as readonly Sortable[];
}

/** Charges `rounds` comparisons of each key with another. */
function spendComparisons({ evaluation }: FilterInput, keys: readonly Sortable[], rounds: number): void {
  spend(evaluation, keys.length * rounds * charges.comparison);
  for (const key of keys)
    if (typeof key === 'string') spend(evaluation, rounds * Math.ceil(key.length / charges.charactersRead));
}

function sortRounds({ length }: readonly Sortable[]): number {
  return Math.ceil(Math.log2(length + 1));
}

function compareKeys(a: Sortable, b: Sortable): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function sortItems(input: FilterInput): Outcome {
  const rule = 'sort takes a list of numbers or a list of strings';
  const keys = requireSortable(input, rule, readList(input, 'sort'));
  spendComparisons(input, keys, sortRounds(keys));
  return found([...keys].sort(compareKeys));
}

function sortByField(input: FilterInput): Outcome {
  const items = readList(input, 'sort_by');
  const rule = `sort_by takes items whose ${JSON.stringify(input.argument)} is a number in all, or a string in all`;
  const keys = requireSortable(
    input,
    rule,
    items.map((item, index) => fieldOf(input, 'sort_by', [index, item])),
  );
  spendComparisons(input, keys, sortRounds(keys));
  const order = items.map((item, index) => ({ item, key: keys[index] ?? 0 }));
  return found(order.sort((a, b) => compareKeys(a.key, b.key)).map(({ item }) => item));
}

function reverseItems(input: FilterInput): Outcome {
  return found([...moveList(input, 'reverse')].reverse());
}

function sumItems(input: FilterInput): Outcome {
  let sum = 0;
  for (const [index, item] of readList(input, 'sum').entries()) {
    if (typeof item !== 'number') throw refuseItem(input, 'sum takes a list of numbers', [index, item]);
    sum += item;
  }
  if (Number.isFinite(sum)) return found(sum);
  throw evaluationError(input.evaluation, 'the sum is too large for a number');
}

function extremeOf(filter: 'min' | 'max') {
  return (input: FilterInput): Outcome => {
    const rule = `${filter} takes a list of numbers or a list of strings`;
    const keys = requireSortable(input, rule, readList(input, filter));
    spendComparisons(input, keys, 1);
    if (keys.length === 0) return missing(() => ({ message: `the list is empty, it has no ${filter}` }));
    const sign = filter === 'min' ? 1 : -1;
    return found(keys.reduce((best, key) => (sign * compareKeys(key, best) < 0 ? key : best)));
  };
}

function entriesOf(filter: 'keys' | 'values') {
  return (input: FilterInput): Outcome => {
    const { value, evaluation } = input;
    if (!isPlainObject(value)) throw refuseValue(input, `${filter} takes an object`);
    const keys = Object.keys(value);
    spendValues(evaluation, keys.length);
    return found(filter === 'keys' ? keys : keys.map((key) => value[key] ?? null));
  };
}

/** An item of a list or a member of an object; missing when there is none. */
function valueAt(input: FilterInput): Outcome {
  const { value, evaluation } = input;
  const [place = null] = input.values;
  if (value === null) {
    if (typeof place === 'number' || typeof place === 'string')
      return missing(() => ({ message: `null has nothing at ${describeIn(evaluation, place)}` }));
    throw evaluationError(
      evaluation,
      `a place is a number or a string, not ${describeIn(evaluation, place)}`,
    );
  }
  if (isList(value)) {
    if (typeof place !== 'number' || !Number.isInteger(place) || place < 0)
      throw evaluationError(
        evaluation,
        `the place in a list is 0, 1, 2, ..., not ${describeIn(evaluation, place)}`,
      );
    const item = value[place];
    return item === undefined
      ? missing(() => ({ message: `there is no item ${place}, the list has ${value.length}` }))
      : found(item);
  }
  if (!isPlainObject(value)) throw refuseValue(input, 'a place is of a list or an object');
  if (typeof place !== 'string')
    throw evaluationError(
      evaluation,
      `the key of an object is a string, not ${describeIn(evaluation, place)}`,
    );
  spendRead(evaluation, place.length);
  const member = Object.hasOwn(value, place) ? value[place] : undefined;
  return member === undefined
    ? missing(() => ({ message: `the object has no key ${JSON.stringify(place.slice(0, 64))}` }))
    : found(member);
}

/** So many whole numbers in a row. */
function countUp(input: FilterInput): Outcome {
  const { value, evaluation } = input;
  const [start = 0] = input.values;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
    throw refuseValue(input, 'range takes a whole number from 0 on');
  if (typeof start !== 'number' || !Number.isSafeInteger(start) || !Number.isSafeInteger(start + value))
    throw evaluationError(
      evaluation,
      `range starts at a whole number, not at ${describeIn(evaluation, start)}`,
    );
  spendValues(evaluation, value);
  return found(Array.from({ length: value }, (_, at) => start + at));
}

/** One object for each way to take one item of each list. */
function combine(input: FilterInput): Outcome {
  const { value, evaluation } = input;
  if (!isPlainObject(value)) throw refuseValue(input, 'combinations takes an object of lists');
  let rows: JsonObject[] = [{}];
  for (const [key, list = null] of Object.entries(value)) {
    if (!isList(list))
      throw evaluationError(
        evaluation,
        `combinations takes an object of lists; ${JSON.stringify(key.slice(0, 64))} is ${describeIn(evaluation, list)}`,
      );
    spendValues(evaluation, rows.length * list.length * (Object.keys(rows[0] ?? {}).length + 1));
    rows = rows.flatMap((row) => list.map((item) => ({ ...row, [key]: item })));
  }
  return found(rows);
}

export const listFilters = {
  at: {
    argument: 'value',
    summary: 'the item at a place from 0 on, or the member of a key; `list[index]` is the same',
    apply: valueAt,
  },
  range: {
    argument: 'optional',
    summary: 'so many whole numbers in a row, from 0 or from the argument',
    apply: countUp,
  },
  combinations: {
    argument: 'none',
    summary: 'an object for each way to take one item of each list of an object; the last key changes first',
    apply: combine,
  },
  map: {
    argument: 'field',
    summary: 'a field of each item; an item that is null stays null',
    apply: mapItems,
  },
  where: {
    argument: 'condition',
    summary: 'the items whose field compares so; a missing field counts as null',
    apply: selectItems,
  },
  concat: { argument: 'value', summary: 'the items of two lists', apply: concatenate },
  slice: {
    argument: 'values',
    summary: 'the items, or the units of a text, from one place to before another; negative from the end',
    apply: slice,
  },
  unique: { argument: 'none', summary: 'the items without repetition, by content', apply: uniqueItems },
  flatten: { argument: 'none', summary: 'the items of the lists in a list', apply: flatten },
  sort: { argument: 'none', summary: 'numbers or strings in ascending order', apply: sortItems },
  sort_by: { argument: 'field', summary: 'items in ascending order of a field', apply: sortByField },
  reverse: { argument: 'none', summary: 'the items from the last to the first', apply: reverseItems },
  sum: { argument: 'none', summary: 'the sum of a list of numbers; 0 for none', apply: sumItems },
  min: {
    argument: 'none',
    summary: 'the least number or string of a list; missing when it is empty',
    apply: extremeOf('min'),
  },
  max: {
    argument: 'none',
    summary: 'the greatest number or string of a list; missing when it is empty',
    apply: extremeOf('max'),
  },
  keys: { argument: 'none', summary: 'the keys of an object', apply: entriesOf('keys') },
  values: { argument: 'none', summary: 'the values of an object', apply: entriesOf('values') },
} as const satisfies Record<string, ExpressionFilter>;
