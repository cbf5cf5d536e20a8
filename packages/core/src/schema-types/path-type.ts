/** Follows a path through types, as `resolvePath` of expression/evaluate.ts follows it through values. */
import { formatPath, type Path, type Segment } from '../expression/ast.ts';
import { createNameSuggester } from '../nearest-name.ts';
import { describeType, itemTypeOf, unionOf } from './combine-types.ts';
import {
  anyType,
  type Effort,
  isKind,
  kinds,
  type ListType,
  listOf,
  neverType,
  nullType,
  type Property,
  type ValueType,
  withoutKinds,
} from './value-type.ts';

export interface TypedValue {
  readonly type: ValueType;
  /** Whether the value is missing, which `??` covers. */
  readonly missing: 'no' | 'maybe' | 'yes';
}

type TypeFaultCode =
  | 'comparison_constant'
  | 'operand_invalid'
  | 'path_invalid'
  | 'path_optional'
  | 'path_undescribed'
  | 'path_unknown';

export interface TypeFault {
  /**
   * error: every evaluation fails, with any values. warning: some values fail, or it is probably a mistake. note: it
   * cannot be determined.
   */
  readonly severity: 'error' | 'warning' | 'note';
  readonly code: TypeFaultCode;
  readonly message: string;
  /** Offset in the string of the expression. */
  readonly offset: number | undefined;
  readonly suggestion?: string | undefined;
}

/** The value at the beginning of a path. */
export interface PathStart extends TypedValue {
  /** Number of segments in the beginning. */
  readonly length: number;
  /** Why the value may be missing. */
  readonly reason?: string | undefined;
}

export interface TypeContext {
  /** Null: nothing is known about it, or its fault is reported elsewhere. */
  readonly startOf: (path: Path) => PathStart | null;
  readonly report: (fault: TypeFault) => void;
  readonly effort: Effort;
}

export const unknownValue: TypedValue = { type: anyType, missing: 'maybe' };

export const missingValue: TypedValue = { type: neverType, missing: 'yes' };

/** A value of this type that is never missing. */
export function someValue(type: ValueType): TypedValue {
  return { type, missing: 'no' };
}

interface PathWalk {
  readonly path: Path;
  readonly context: TypeContext;
  /** `??` covers a missing value. */
  readonly isCovered: boolean;
}

interface TypedStop extends TypedValue {
  /** Number of segments before it. */
  readonly position: number;
}

export function typeOfPath(path: Path, context: TypeContext, isCovered: boolean): TypedValue {
  const start = context.startOf(path);
  if (start === null) return unknownValue;
  const walk: PathWalk = { path, context, isCovered };
  const place: TypedStop = { type: start.type, missing: start.missing, position: start.length };
  if (start.missing === 'maybe') mayBeMissing(walk, place.position, start.reason);
  return follow(place, walk);
}

function follow(start: TypedStop, walk: PathWalk): TypedValue {
  const { segments } = walk.path;
  let { type, missing } = start;
  for (let position = start.position; position < segments.length; position++) {
    if (type === anyType) return unknownValue;
    const segment = segments[position] ?? '';
    const isName = typeof segment === 'string';
    if (!isKind(type, isName ? kinds.object : kinds.list)) {
      return endWrong({ type, missing, position }, segment, walk);
    }
    if (isKind(type, kinds.null)) {
      if (type.kinds !== anyType.kinds) mayBeNull(walk, position);
      missing = 'maybe';
    }
    if (typeof segment === 'object') return followEach({ type, missing, position }, walk);
    const property = isName ? type.object.property(segment) : itemAt(type.list, segment);
    if (property.presence === 'never') return endUnknown({ type, missing, position }, segment, walk);
    if (property.presence === 'maybe') {
      if (isNamed(type, segment)) mayBeMissing(walk, position + 1);
      else if (type.object.isDescribed) isUndescribed(walk, position + 1);
      missing = 'maybe';
    }
    type = property.type;
  }
  return { type, missing };
}

function itemAt(list: ListType, index: number): Property {
  if (index >= list.most) return { type: list.rest(), presence: 'never' };
  return { type: list.item(index), presence: index < list.least ? 'certain' : 'maybe' };
}

/** Whether the type describes the key: by name, by a type for all other keys, or as an item of a list. */
function isNamed({ object }: ValueType, segment: string | number): boolean {
  return typeof segment === 'number' || object.names().has(segment) || object.other().type !== anyType;
}

/** `[*]`: a list with the rest of the path applied to each item, where a null item stays null. */
function followEach(place: TypedStop, walk: PathWalk): TypedValue {
  const { list } = place.type;
  if (list.most === 0) return { type: listOf(itemTypeOf(place.type), { most: 0 }), missing: place.missing };
  const item = itemTypeOf(place.type);
  const keepsNull = item !== anyType && isKind(item, kinds.null);
  const from = keepsNull ? withoutKinds(item, kinds.null) : item;
  const { type: taken, missing } = follow({ type: from, missing: 'no', position: place.position + 1 }, walk);
  const type = keepsNull ? unionOf([taken, nullType]) : taken;
  const isCertain = missing === 'no' || (missing === 'yes' && list.least > 0);
  return { type: listOf(type, list), missing: place.missing === 'no' && isCertain ? missing : 'maybe' };
}

/** No value of this type has such a segment. Below null the value is missing; below anything else it is an error. */
function endWrong({ type, missing, position }: TypedStop, segment: Segment, walk: PathWalk): TypedValue {
  if (type.kinds === 0) return unknownValue;
  const seen = `${nameOf(walk, position)}, which is ${describeType(type)}`;
  const message = `${formatPath('', [segment])} does not apply to ${seen}`;
  const mayPass = walk.isCovered && (missing !== 'no' || isKind(type, kinds.null));
  report(walk, { severity: mayPass ? 'warning' : 'error', code: 'path_invalid', message });
  return mayPass ? missingValue : unknownValue;
}

function endUnknown({ type, position }: TypedStop, segment: string | number, walk: PathWalk): TypedValue {
  const wanted = nameOf(walk, position + 1);
  const owner = nameOf(walk, position);
  const has = typeof segment === 'number' ? `has at most ${type.list.most} items` : describeKeys(type);
  report(walk, {
    severity: walk.isCovered ? 'warning' : 'error',
    code: 'path_unknown',
    message: `${wanted} never exists; ${owner} ${has}`,
    suggestion: typeof segment === 'string' ? suggestKey(type, segment, walk.context) : undefined,
  });
  return walk.isCovered ? missingValue : unknownValue;
}

const shownKeys = 12;

function describeKeys({ object }: ValueType): string {
  const names = [...object.names()].filter((name) => object.property(name).presence !== 'never');
  if (names.length === 0) return 'has no keys';
  const shown = names.slice(0, shownKeys).map((name) => name.slice(0, 64));
  const more = names.length > shownKeys ? ` and ${names.length - shownKeys} more` : '';
  return `has ${shown.join(', ')}${more}`;
}

export function suggestKey(
  { object }: ValueType,
  name: string,
  { effort }: Pick<TypeContext, 'effort'>,
): string | undefined {
  const names = object.names();
  effort.left -= names.size * 20;
  return effort.left < 0 ? undefined : createNameSuggester(names)(name);
}

function mayBeNull(walk: PathWalk, position: number): void {
  if (!walk.isCovered) mayBeMissing(walk, position, `${nameOf(walk, position)} may be null`);
}

function mayBeMissing(walk: PathWalk, position: number, reason?: string): void {
  if (walk.isCovered) return;
  const message = `${nameOf(walk, position)} may be missing${reason === undefined ? '' : `: ${reason}`}`;
  report(walk, { severity: 'warning', code: 'path_optional', message, suggestion: 'add ?? with a default' });
}

function isUndescribed(walk: PathWalk, position: number): void {
  if (walk.isCovered) return;
  const message = `${nameOf(walk, position)} is not in the schema, which allows other keys`;
  report(walk, { severity: 'note', code: 'path_undescribed', message });
}

function report({ path, context }: PathWalk, fault: Omit<TypeFault, 'offset'>): void {
  context.report({ ...fault, offset: path.offset });
}

function nameOf({ path }: PathWalk, position: number): string {
  return formatPath(path.root, path.segments.slice(0, position)).slice(0, 200);
}
