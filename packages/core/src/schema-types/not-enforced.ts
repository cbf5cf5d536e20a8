/**
 * Patterns of untrusted schemas run in a linear-time engine. It cannot run every pattern of ECMA-262: look-around and
 * back references are missing. Such a pattern is accepted and not enforced. The rest of the schema is weakened where
 * that is necessary, so that every value that the schema accepts passes: `not`, `oneOf`, `if` and `maxContains` refuse
 * more when a pattern inside them matches more.
 */
import { RE2JS, RE2JSException } from 're2js';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { extendPointer, isList, isPlainObject } from '../json/values.ts';
import { dataKeywords, referenceKeywords, schemaMaps } from './references.ts';

/** One keyword of a schema that refuses no value, or fewer values than it should. */
export interface UnenforcedKeyword {
  /** To the keyword; to the pattern where the keyword is `patternProperties`. */
  readonly pointer: string;
  readonly keyword: 'pattern' | 'patternProperties' | 'not' | 'oneOf' | 'if' | 'maxContains';
  readonly reason: string;
}

export interface EnforceableSchema {
  /** The same object as the given schema when all of it is enforced. */
  readonly schema: JsonObject;
  readonly notEnforced: readonly UnenforcedKeyword[];
}

/** @returns why the linear engine cannot run the pattern; null when it can, or when the pattern is no valid one */
type FaultOf = (pattern: string) => string | null;

interface Weakening {
  readonly faultOf: FaultOf;
  readonly found: UnenforcedKeyword[];
}

export function compileLinear(pattern: string): RE2JS {
  return RE2JS.compile(RE2JS.translateRegExp(pattern));
}

/**
 * Leaves out the patterns that the linear engine cannot run. A broken pattern stays, so compiling refuses it.
 * @param schema without a fault by findSchemaFault
 * @param compile a caller that runs the patterns afterwards keeps their programs
 */
export function toEnforceable(schema: JsonObject, compile = compileLinear): EnforceableSchema {
  const known = new Map<string, string | null>();
  const faultOf: FaultOf = (pattern) => {
    const fault = known.has(pattern) ? (known.get(pattern) ?? null) : findEngineFault(pattern, compile);
    known.set(pattern, fault);
    return fault;
  };
  const found: UnenforcedKeyword[] = [];
  if (!hasOpenPattern(schema, faultOf, false)) return { schema, notEnforced: found };
  const weak = weakenSchema(schema, '', { faultOf, found });
  return { schema: weak, notEnforced: found };
}

export function listNotEnforced(schema: JsonObject): readonly UnenforcedKeyword[] {
  return toEnforceable(schema).notEnforced;
}

/** The engine takes it for the text `k<name>` instead of refusing it. */
const namedBackReference = /\\k</;

function findEngineFault(pattern: string, compile: (pattern: string) => unknown): string | null {
  if (namedBackReference.test(pattern) && isRegExp(pattern, '')) return 'named back reference: `\\k`';
  try {
    compile(pattern);
    return null;
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    return isRegExp(pattern, 'u') || isRegExp(pattern, '') ? error.message : null;
  }
}

/** The pattern is parsed here, and never run. */
function isRegExp(pattern: string, flags: string): boolean {
  try {
    new RegExp(pattern, flags);
    return true;
  } catch {
    return false;
  }
}

/** @param countsReferences a reference counts as a pattern that is not enforced, because it may lead to one */
function hasOpenPattern(value: Json | undefined, faultOf: FaultOf, countsReferences: boolean): boolean {
  const search = (inside: Json | undefined, isMap: boolean): boolean => {
    if (typeof inside !== 'object' || inside === null) return false;
    if (isList(inside)) return inside.some((item) => search(item, false));
    if (!isMap && (listOpen(inside, faultOf).length > 0 || (countsReferences && isReference(inside))))
      return true;
    return Object.entries(inside).some(
      ([key, child]) => (isMap || !dataKeywords.has(key)) && search(child, !isMap && schemaMaps.has(key)),
    );
  };
  return search(value, false);
}

function isReference(schema: JsonObject): boolean {
  return referenceKeywords.some((keyword) => typeof schema[keyword] === 'string');
}

/** The patterns of one schema, without those inside it, that the engine cannot run. */
function listOpen({ pattern, patternProperties }: JsonObject, faultOf: FaultOf): string[] {
  const patterns = isPlainObject(patternProperties) ? Object.keys(patternProperties) : [];
  if (typeof pattern === 'string') patterns.push(pattern);
  return patterns.filter((text) => faultOf(text) !== null);
}

function weakenValue(value: Json, pointer: string, weakening: Weakening): Json {
  if (isList(value))
    return value.map((item, at) => weakenValue(item, extendPointer(pointer, String(at)), weakening));
  return isPlainObject(value) ? weakenSchema(value, pointer, weakening) : value;
}

function weakenMap(value: Json, pointer: string, weakening: Weakening): Json {
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => [
      key,
      weakenValue(child, extendPointer(pointer, key), weakening),
    ]),
  );
}

function weakenSchema(schema: JsonObject, pointer: string, weakening: Weakening): JsonObject {
  const inside = Object.entries(schema).map(([key, child]): [string, Json] => {
    const at = extendPointer(pointer, key);
    if (dataKeywords.has(key)) return [key, child];
    return [key, schemaMaps.has(key) ? weakenMap(child, at, weakening) : weakenValue(child, at, weakening)];
  });
  const place: WeakPlace = { schema, pointer, weak: Object.fromEntries(inside) };
  dropPatterns(place, weakening);
  dropInverting(place, weakening);
  return place.weak;
}

interface WeakPlace {
  /** As it was given. */
  readonly schema: JsonObject;
  readonly pointer: string;
  /** With the schemas inside it weakened already. */
  readonly weak: Record<string, Json>;
}

/** A key that matches an open pattern may have any value, and no key is known to match none. */
function dropPatterns({ schema, pointer, weak }: WeakPlace, { faultOf, found }: Weakening): void {
  const note = (keyword: UnenforcedKeyword['keyword'], at: readonly string[], pattern: string): boolean => {
    const fault = faultOf(pattern);
    if (fault === null) return false;
    found.push({
      pointer: extendPointer(pointer, ...at),
      keyword,
      reason: `it cannot run in linear time: ${fault}`,
    });
    return true;
  };
  if (typeof schema.pattern === 'string' && note('pattern', ['pattern'], schema.pattern)) delete weak.pattern;
  if (!isPlainObject(weak.patternProperties)) return;
  const all = Object.entries(weak.patternProperties);
  const kept = all.filter(([key]) => !note('patternProperties', ['patternProperties', key], key));
  if (kept.length < all.length) weak.patternProperties = { '': true, ...Object.fromEntries(kept) };
}

/**
 * Replaces the keywords that refuse a value because a schema inside them accepts it. `oneOf` and `if` become unions, so
 * that `unevaluatedProperties` still sees the keys that their branches describe.
 */
function dropInverting({ schema, pointer, weak }: WeakPlace, { faultOf, found }: Weakening): void {
  const unions: Json[] = [];
  const isOpen = (keyword: UnenforcedKeyword['keyword'], inside: Json | undefined): boolean => {
    if (schema[keyword] === undefined || !hasOpenPattern(inside, faultOf, true)) return false;
    const reason = 'it contains a pattern that is not enforced, or a reference that may lead to one';
    found.push({ pointer: extendPointer(pointer, keyword), keyword, reason });
    return true;
  };
  if (isOpen('not', schema.not)) delete weak.not;
  if (isOpen('maxContains', schema.contains)) delete weak.maxContains;
  if (isOpen('oneOf', schema.oneOf)) {
    unions.push({ anyOf: weak.oneOf ?? [] });
    delete weak.oneOf;
  }
  if (isOpen('if', schema.if)) {
    const { if: condition = true, then: met = true, else: other = true } = weak;
    unions.push({ anyOf: [{ allOf: [condition, met] }, other] });
    for (const keyword of ['if', 'then', 'else']) delete weak[keyword];
  }
  const { allOf = [] } = weak;
  if (unions.length > 0) weak.allOf = [...(isList(allOf) ? allOf : []), ...unions];
}
