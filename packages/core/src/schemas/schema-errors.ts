/**
 * Names the invalid field, the value that was seen and the allowed values.
 *
 * For a value with holes, only errors that hold for any content of the holes count. Keys are known, so errors about
 * keys hold. Errors about values hold if they contain no hole. Errors of a branch hold only for that branch.
 */
import type { ErrorObject } from 'ajv';
import { extendPointer } from '../json/values.ts';
import { createNameSuggester } from '../nearest-name.ts';
import type { SchemaFinding } from '../repair/candidate.ts';

export interface SchemaError {
  /** JSON Pointer to the field; empty for the whole value. */
  readonly pointer: string;
  readonly message: string;
}

const maxErrors = 20;
const maxShown = 10;

/** The first twenty, without duplicate pairs of field and message. */
export function describeSchemaErrors(errors: readonly ErrorObject[]): readonly SchemaFinding[] {
  const found = new Map<string, SchemaFinding>();
  for (const error of errors) {
    const { keyword, params } = error;
    const described = { ...describe(error), keyword, params };
    found.set(`${described.pointer} ${described.message}`, described);
    if (found.size === maxErrors) break;
  }
  return [...found.values()];
}

function describe({ keyword, instancePath, params, message, data, parentSchema }: ErrorObject): SchemaError {
  const at = (name: unknown): string => extendPointer(instancePath, String(name));
  switch (keyword) {
    case 'required':
    case 'dependentRequired':
      return { pointer: at(params.missingProperty), message: 'is required' };
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const name = params.additionalProperty ?? params.unevaluatedProperty;
      return { pointer: at(name), message: `is not allowed${knownNames(parentSchema)}` };
    }
    case 'enum':
      return {
        pointer: instancePath,
        message: `must be ${list(params.allowedValues)}, got ${show(data)}${suggest(params.allowedValues, data)}`,
      };
    case 'const':
      return {
        pointer: instancePath,
        message: `must be ${show(params.allowedValue)}, got ${show(data)}${suggest([params.allowedValue], data)}`,
      };
    default:
      return {
        pointer: instancePath,
        message: `${message ?? 'does not match the schema'}, got ${show(data)}`,
      };
  }
}

/** The suggestion for a misspelt value, as for a misspelt key. */
function suggest(allowed: readonly unknown[], value: unknown): string {
  if (typeof value !== 'string') return '';
  const names = allowed.filter((one) => typeof one === 'string');
  const suggestion = createNameSuggester(names)(value);
  return suggestion === undefined ? '' : `; ${suggestion}`;
}

function knownNames(schema: ErrorObject['parentSchema']): string {
  const names = Object.keys(schema?.properties ?? {});
  if (names.length === 0) return '';
  return `; allowed: ${shorten(names)}`;
}

function list(values: readonly unknown[]): string {
  return values.length === 1 ? show(values[0]) : `one of ${shorten(values.map(show))}`;
}

function shorten(names: readonly string[]): string {
  return names.length > maxShown
    ? `${names.slice(0, maxShown).join(', ')} and ${names.length - maxShown} more`
    : names.join(', ');
}

/** A value in a sentence; lists and objects by kind only. */
function show(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (value !== null && typeof value === 'object') return 'an object';
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/** Keywords that judge keys, the number of items, or the kind of a value that is not a hole itself. */
const aboutKeys: ReadonlySet<string> = new Set([
  'additionalProperties',
  'dependentRequired',
  'maxItems',
  'maxProperties',
  'minItems',
  'minProperties',
  'propertyNames',
  'required',
  'type',
]);

/** Keywords whose subschemas need not all hold. */
const aboutBranches: ReadonlySet<string> = new Set(['anyOf', 'contains', 'if', 'not', 'oneOf']);

/**
 * Filters the errors of a value with holes to those that hold for any content of the holes. Keys are known, so errors
 * about keys hold. Errors about values hold if they contain no hole. Errors of a branch hold only for that branch.
 */
export function keepCertain(
  errors: readonly ErrorObject[],
  holes: ReadonlySet<string>,
): readonly ErrorObject[] {
  const aroundHoles = listAround(holes);
  const branched = new Set(
    errors.filter(({ keyword }) => aboutBranches.has(keyword)).map(({ instancePath }) => instancePath),
  );
  return errors.filter(({ keyword, instancePath }) => {
    if (holes.has(instancePath)) return false;
    if (aboutBranches.has(keyword)) return !aroundHoles.has(instancePath) && !isBelow(instancePath, branched);
    if (branched.has(instancePath) || isBelow(instancePath, branched)) return false;
    return aboutKeys.has(keyword) || !aroundHoles.has(instancePath);
  });
}

function listAround(holes: ReadonlySet<string>): ReadonlySet<string> {
  const around = new Set<string>();
  for (const hole of holes) for (const pointer of listAbove(hole)) around.add(pointer);
  return around;
}

/** Pointers to all containers of a value, the outermost first. */
function listAbove(pointer: string): string[] {
  const above: string[] = [];
  for (let end = pointer.indexOf('/'); end >= 0; end = pointer.indexOf('/', end + 1)) {
    above.push(pointer.slice(0, end));
  }
  return above;
}

function isBelow(pointer: string, places: ReadonlySet<string>): boolean {
  return places.size > 0 && listAbove(pointer).some((above) => places.has(above));
}
