/**
 * Turns a stranger's JSON Schema into a check. Each schema gets an ajv of its own, so that dropping the check frees
 * all of it and no schema can name or shadow another; only the meta-schemas are shared. Patterns run in linear
 * time (re2js); nothing is coerced, defaulted or fetched; what a check may cost is bounded. A first pass ends at the
 * first error; only for a value that fails, a second one looks for more. Drafts: 2020-12, and 07 where `$schema`
 * says so.
 */
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { RE2JS } from 're2js';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { findSchemaFault, isDraft7, schemaLimits } from '../core/foreign-schema.ts';
import type { SchemaFinding } from '../core/repair/candidate.ts';
import { assertFormats, type FormatUse } from './formats.ts';
import { describeSchemaErrors, keepCertain, type SchemaError } from './schema-errors.ts';
import { createWorkMeter, meterSchemas, TooMuchWork, type WorkMeter } from './work-meter.ts';

/** What the value does wrong; empty when it is valid. Never throws. */
export interface SchemaCheck {
  (value: Json): readonly SchemaError[];
  /** The same with what it is about, for a repair. */
  readonly find: (value: Json) => readonly SchemaFinding[];
}

export interface CompiledSchema extends SchemaCheck {
  /**
   * What a value does wrong whatever stands in its holes; nothing where the work does not suffice.
   * @param holes pointers of parts that are not known
   * @param work units that are left; what is used is taken off
   */
  readonly findCertain: (
    value: Json,
    holes: ReadonlySet<string>,
    work: { left: number },
  ) => readonly SchemaFinding[];
}

export interface SchemaCompiler {
  /** @throws SchemaRefused with what is wrong and what is allowed */
  compile(schema: JsonObject, formats?: FormatUse): CompiledSchema;
}

export class SchemaRefused extends Error {
  override readonly name = 'SchemaRefused';
}

/** Why the schema cannot be used, or null. */
export function findRefusal(compiler: SchemaCompiler, schema: JsonObject): string | null {
  try {
    compiler.compile(schema);
    return null;
  } catch (error) {
    if (error instanceof SchemaRefused) return error.message;
    throw error;
  }
}

/** Units of work, see the meter: about 1 s, and a tenth of it for looking at what else is wrong. */
const verdictBudget = 200_000_000;
const detailBudget = 2_000_000;
/** What a pattern costs for each character of the text, besides its instructions. */
const patternBaseUnits = 50;

type Patterns = NonNullable<NonNullable<Options['code']>['regExp']>;

/** @throws SchemaRefused when all its patterns together have too many instructions */
function createLinearPatterns({ spend }: WorkMeter): Patterns {
  const known = new Map<string, RE2JS>();
  let size = 0;
  const compile = (pattern: string): RE2JS => {
    const compiled = known.get(pattern) ?? RE2JS.compile(RE2JS.translateRegExp(pattern));
    if (!known.has(pattern)) size += compiled.programSize();
    if (size > schemaLimits.patternSize) {
      throw new SchemaRefused(`patterns of more than ${schemaLimits.patternSize} instructions`);
    }
    known.set(pattern, compiled);
    return compiled;
  };
  const create = (pattern: string): ReturnType<Patterns> => {
    const compiled = compile(pattern);
    const units = patternBaseUnits + compiled.programSize() * 4;
    return {
      test: (text) => {
        spend(units * text.length);
        return compiled.test(text);
      },
      toString: () => pattern, // ajv caches by this text
    } as ReturnType<Patterns>;
  };
  return Object.assign(create, { code: 'linearPattern' });
}

const options: Options = {
  strict: false,
  ownProperties: true,
  verbose: true,
  logger: false,
  validateSchema: false,
  meta: false,
  inlineRefs: false,
  unicodeRegExp: false,
};

const metaSettings: Options = { strict: false, validateFormats: false, logger: false };
/** Each compiles its meta-schema once, when the first schema is checked. */
const draft7 = new Ajv(metaSettings);
const draft2020 = new Ajv2020(metaSettings);

/** Against the meta-schema of its draft. */
function checkForm(schema: JsonObject): void {
  const { $schema, ...rest } = schema;
  const ajv = isDraft7(schema) ? draft7 : draft2020;
  if (ajv.validateSchema(rest) !== true) throw new SchemaRefused(ajv.errorsText(ajv.errors, { dataVar: '' }));
}

export function createSchemaCompiler(): SchemaCompiler {
  const compile = (schema: JsonObject, formats: FormatUse): CompiledSchema => {
    const fault = findSchemaFault(schema);
    if (fault !== null) throw new SchemaRefused(fault);
    checkForm(schema);
    return createCheck(schema, formats);
  };

  return {
    compile: (schema, formats = 'asserted') => {
      try {
        return compile(schema, formats);
      } catch (error) {
        throw explainRefusal(error);
      }
    },
  };
}

function explainRefusal(error: unknown): SchemaRefused {
  if (error instanceof SchemaRefused) return error;
  if (error instanceof RangeError) return new SchemaRefused('its references lead too far from each other');
  return new SchemaRefused(error instanceof Error ? error.message : String(error), { cause: error });
}

function createCheck(schema: JsonObject, formats: FormatUse): CompiledSchema {
  const finders = createFinders(schema, formats);
  const check = (value: Json): readonly SchemaError[] =>
    finders.find(value).map(({ pointer, message }) => ({ pointer, message }));
  return Object.assign(check, finders);
}

type ListErrors = (value: Json, budget: number) => readonly ErrorObject[];

/** @returns lists all errors of a value; compiles the schema for that when it is first asked */
function createErrorList(schema: JsonObject, meter: WorkMeter, settings: Options): ListErrors {
  let detail: ValidateFunction | null = null;
  return (value, budget) => {
    detail ??= compileWith(schema, meter, { ...settings, allErrors: true });
    meter.reset(budget);
    return detail(value) ? [] : (detail.errors ?? []);
  };
}

function createFinders(schema: JsonObject, formats: FormatUse): Pick<CompiledSchema, 'find' | 'findCertain'> {
  const meter = createWorkMeter();
  const code = { regExp: createLinearPatterns(meter) };
  const settings: Options = { ...options, code, validateFormats: formats === 'asserted' };
  const settle = compileWith(schema, meter, settings);
  const listErrors = createErrorList(schema, meter, settings);

  const find: SchemaCheck['find'] = (value) => {
    try {
      meter.reset(verdictBudget);
      if (settle(value)) return [];
    } catch (error) {
      return [explainUnfinished(error)];
    }
    const first = settle.errors ?? [];
    try {
      const all = listErrors(value, detailBudget);
      return describeSchemaErrors(all.length > 0 ? all : first);
    } catch (error) {
      explainUnfinished(error); // or throws; where looking for more took too long, the first error has to do
      return describeSchemaErrors(first);
    }
  };

  const findCertain: CompiledSchema['findCertain'] = (value, holes, work) => {
    if (work.left <= 0) return [];
    const budget = Math.min(work.left, detailBudget);
    try {
      return describeSchemaErrors(keepCertain(listErrors(value, budget), holes));
    } catch (error) {
      explainUnfinished(error); // or throws
      return [];
    } finally {
      work.left -= budget - meter.left();
    }
  };

  return { find, findCertain };
}

function compileWith(schema: JsonObject, meter: WorkMeter, settings: Options): ValidateFunction {
  const { $schema, ...rest } = schema;
  const ajv = isDraft7(schema) ? new Ajv(settings) : new Ajv2020(settings);
  ajv.opts.unevaluated = hasUnevaluated(rest); // what it costs otherwise is paid for nothing
  if (settings.validateFormats === true) assertFormats(ajv);
  meterSchemas(ajv, meter, rest);
  return ajv.compile(rest);
}

function hasUnevaluated(value: Json): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).some(([key, child]) => key.startsWith('unevaluated') || hasUnevaluated(child))
  );
}

/** The check did not come to an end: the value is not shown to be valid. */
function explainUnfinished(error: unknown): SchemaFinding {
  const whole = { pointer: '', keyword: '', params: {} };
  if (error instanceof TooMuchWork) {
    return { ...whole, message: 'is too much work to check against the schema; it must be smaller' };
  }
  if (error instanceof RangeError) return { ...whole, message: 'is nested too deeply to be checked' };
  throw error;
}
