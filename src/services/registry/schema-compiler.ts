/**
 * Turns a stranger's JSON Schema into a check. Each schema gets an ajv of its own, so that dropping the check frees
 * all of it and no schema can name or shadow another; only the meta-schemas are shared. Patterns run in linear
 * time (re2js); nothing is coerced, defaulted or fetched. Drafts: 2020-12, and 07 where `$schema` says so.
 */
import { Ajv, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { RE2JS } from 're2js';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import { findSchemaFault } from '../../core/registry/schema-limits.ts';
import { describeSchemaErrors, type SchemaError } from './schema-errors.ts';

/** What the value does wrong; empty when it is valid. */
export type SchemaCheck = (value: Json) => readonly SchemaError[];

export interface SchemaCompiler {
  /** @throws SchemaRefused with what is wrong and what is allowed */
  compile(schema: JsonObject): SchemaCheck;
}

export class SchemaRefused extends Error {
  override readonly name = 'SchemaRefused';
}

const linearPattern = (pattern: string): { test(text: string): boolean; toString(): string } => {
  const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
  return {
    test: (text) => compiled.matcher(text).find(),
    toString: () => pattern, // ajv caches by this text
  };
};

const options: Options = {
  strict: false,
  allErrors: true,
  ownProperties: true,
  verbose: true,
  logger: false,
  validateSchema: false,
  addUsedSchema: false,
  meta: false,
  inlineRefs: false,
  unicodeRegExp: false,
  code: { regExp: Object.assign(linearPattern, { code: 'linearPattern' }) },
};

const isDraft7 = ({ $schema }: JsonObject): boolean =>
  typeof $schema === 'string' && /^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/.test($schema);

export const createSchemaCompiler = (): SchemaCompiler => {
  const metaSettings: Options = { strict: false, validateFormats: false, logger: false };
  const draft7 = new Ajv(metaSettings);
  const draft2020 = new Ajv2020(metaSettings);

  /** Against the meta-schema of its draft. */
  const checkForm = (schema: JsonObject): void => {
    const { $schema, ...rest } = schema;
    const ajv = isDraft7(schema) ? draft7 : draft2020;
    if (ajv.validateSchema(rest) !== true)
      throw new SchemaRefused(ajv.errorsText(ajv.errors, { dataVar: '' }));
  };

  const compileWith = (schema: JsonObject): ValidateFunction => {
    const { $schema, ...rest } = schema;
    const ajv = isDraft7(schema) ? new Ajv(options) : new Ajv2020(options);
    addFormats.default(ajv);
    try {
      return ajv.compile(rest);
    } catch (error) {
      throw new SchemaRefused(error instanceof Error ? error.message : String(error), { cause: error });
    }
  };

  return {
    compile: (schema) => {
      const fault = findSchemaFault(schema);
      if (fault !== null) throw new SchemaRefused(fault);
      checkForm(schema);
      const validate = compileWith(schema);
      return (value) => (validate(value) ? [] : describeSchemaErrors(validate.errors ?? []));
    },
  };
};
