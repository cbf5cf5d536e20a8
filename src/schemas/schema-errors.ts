/** Says which field is wrong, what was seen there and what is allowed. */
import type { ErrorObject } from 'ajv';
import { extendPointer } from '../core/json-pointer.ts';
import type { SchemaFinding } from '../core/repair/schema-finding.ts';

export interface SchemaError {
  /** JSON Pointer to the field; empty for the whole value. */
  readonly pointer: string;
  readonly message: string;
}

const maxErrors = 20;
const maxShown = 10;

/** The first twenty, each field and message once. */
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
      return { pointer: instancePath, message: `must be ${list(params.allowedValues)}, got ${show(data)}` };
    case 'const':
      return { pointer: instancePath, message: `must be ${show(params.allowedValue)}, got ${show(data)}` };
    default:
      return {
        pointer: instancePath,
        message: `${message ?? 'does not match the schema'}, got ${show(data)}`,
      };
  }
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
