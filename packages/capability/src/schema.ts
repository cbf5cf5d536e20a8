/**
 * An author's schema, as zod or as JSON Schema (draft 2020-12), in the two forms that an instance needs: the JSON
 * Schema for `/spec`, and a check that names the wrong field.
 */

import { JsonObject } from '@capstan/core/contracts/primitives';
import { toNearest } from '@capstan/core/json/numbers';
import { assertFormats } from '@capstan/core/schemas/formats';
import { Ajv2020, type ErrorObject, type Options, type ValidateFunction } from 'ajv/dist/2020.js';
import { z } from 'zod';

export type Schema = z.ZodType | JsonObject;

/** What `exec` receives for an input schema. */
export type InputOf<S extends Schema> = S extends z.ZodType ? z.output<S> : JsonObject;
/** What `exec` returns for an output schema. */
export type OutputOf<S extends Schema> = S extends z.ZodType ? z.input<S> : JsonObject;

export type Checked =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: string };

export interface PortSchema {
  readonly json: JsonObject;
  check(value: unknown): Promise<Checked>;
}

/** Not `instanceof`: the author may use another copy of zod. */
function isZod(schema: Schema): schema is z.ZodType {
  return '_zod' in schema;
}

function formatPath(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return text.replace(/^\./, '') || 'the value';
}

function compileZod(schema: z.ZodType, io: 'input' | 'output'): PortSchema {
  return {
    json: JsonObject.parse(JSON.parse(JSON.stringify(z.toJSONSchema(schema, { io })))),
    check: async (value) => {
      const parsed = await z.safeParseAsync(schema, value);
      if (parsed.success) return { ok: true, value: parsed.data };
      const findings = parsed.error.issues
        .slice(0, 5)
        .map((issue) => `${formatPath(issue.path)}: ${issue.message}`);
      return { ok: false, error: findings.join('; ') };
    },
  };
}

function pathOf(error: ErrorObject): PropertyKey[] {
  const parts: PropertyKey[] = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  const named = error.params.missingProperty ?? error.params.additionalProperty;
  return typeof named === 'string' ? [...parts, named] : parts;
}

function createAjv(io: 'input' | 'output', more: Options = {}): Ajv2020 {
  const validateFormats = io === 'input';
  const ajv = new Ajv2020({ strict: false, ownProperties: true, validateFormats, logger: false, ...more });
  if (validateFormats) assertFormats(ajv);
  return ajv;
}

/** Each compiles the meta-schema once, when the first schema is checked: that takes far longer than most schemas. */
const forms = { input: createAjv('input'), output: createAjv('output') };

/** Like the router, asserts formats for inputs only. @throws Error when it is not a schema */
export function compileAjv(schema: JsonObject, io: 'input' | 'output'): ValidateFunction {
  forms[io].validateSchema(schema, true);
  return createAjv(io, { validateSchema: false }).compile(schema);
}

function compileJsonSchema(schema: JsonObject, io: 'input' | 'output'): PortSchema {
  const validate = compileAjv(schema, io);
  return {
    json: schema,
    check: async (value) => {
      if (validate(toNearest(value))) return { ok: true, value };
      const [error] = validate.errors ?? [];
      const field = error === undefined ? 'the value' : formatPath(pathOf(error));
      return { ok: false, error: `${field}: ${error?.message ?? 'does not match the schema'}` };
    },
  };
}

/** @throws Error when it is not a schema, or cannot be represented as JSON Schema */
export function compileSchema(schema: Schema, io: 'input' | 'output'): PortSchema {
  try {
    return isZod(schema) ? compileZod(schema, io) : compileJsonSchema(schema, io);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`the ${io} schema cannot be used: ${reason}`, { cause: error });
  }
}
