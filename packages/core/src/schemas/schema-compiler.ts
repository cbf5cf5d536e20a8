/**
 * Turns an untrusted JSON Schema into a check. Each schema gets its own ajv, so that dropping the check frees all of it
 * and no schema can refer to or shadow another; only the meta-schemas are shared. Patterns run in linear time (re2js);
 * those that cannot are not enforced (core/schema-types/not-enforced.ts). Nothing is coerced, defaulted or fetched, and
 * the cost of a check is bounded. A first pass stops at the first error; a second one collects more only for an invalid
 * value. Drafts: 2020-12, and 07 where `$schema` names it.
 *
 * Compiling and checking are one piece each. A process that serves others meanwhile uses foreign-check.ts.
 */
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { RE2JS } from 're2js';
import type { Json, JsonObject } from '../contracts/primitives.ts';
import { findSchemaFault, schemaLimits } from '../foreign-schema.ts';
import { toNearest } from '../json/numbers.ts';
import type { SchemaFinding } from '../repair/candidate.ts';
import { compileLinear, toEnforceable } from '../schema-types/not-enforced.ts';
import { isDraft7, withLocalReferences } from '../schema-types/references.ts';
import { assertFormats, type FormatUse } from './formats.ts';
import { describeSchemaErrors, keepCertain, type SchemaError } from './schema-errors.ts';
import { reduceUnions } from './union-errors.ts';
import {
  compareInLinearTime,
  createWorkMeter,
  meterSchemas,
  TooMuchWork,
  type WorkMeter,
} from './work-meter.ts';

/** The faults of a value; empty when it is valid. Never throws. */
export interface SchemaCheck {
  (value: Json): readonly SchemaError[];
  /** The faults of every branch of a union, with their keywords, for a repair. */
  readonly find: (value: Json) => readonly SchemaFinding[];
}

/** Units of work that are left; reduced by what is used. */
export interface CheckWork {
  left: number;
}

export interface CompiledSchema extends SchemaCheck {
  /** As the check and its `find`; null when the work that is left does not suffice. */
  readonly within: {
    readonly errors: (value: Json, work: CheckWork) => readonly SchemaError[] | null;
    readonly findings: (value: Json, work: CheckWork) => readonly SchemaFinding[] | null;
  };
  /**
   * Faults of a value that hold whatever its holes contain; none when the work is used up.
   * @param holes pointers of unknown parts
   */
  readonly findCertain: (
    value: Json,
    holes: ReadonlySet<string>,
    work: CheckWork,
  ) => readonly SchemaFinding[];
}

export interface SchemaCompiler {
  /** @throws SchemaRefused with the fault and the allowed values */
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

/** Units of work (see the meter): about 1 s, and a tenth of it for collecting further errors. */
export const verdictBudget = 200_000_000;
const detailBudget = 2_000_000;
/** Units per character of the text that a pattern costs, besides its instructions. */
const patternBaseUnits = 50;

type Patterns = NonNullable<NonNullable<Options['code']>['regExp']>;

type CompilePattern = (pattern: string) => RE2JS;

/** Compiles each pattern once. @throws SchemaRefused when all of them together have too many instructions */
function createPatternCompiler(): CompilePattern {
  const known = new Map<string, RE2JS>();
  let size = 0;
  return (pattern) => {
    const compiled = known.get(pattern) ?? compileLinear(pattern);
    if (!known.has(pattern)) size += compiled.programSize();
    if (size > schemaLimits.patternSize) {
      throw new SchemaRefused(`patterns of more than ${schemaLimits.patternSize} instructions`);
    }
    known.set(pattern, compiled);
    return compiled;
  };
}

function createLinearPatterns({ spend }: WorkMeter, compile: CompilePattern): Patterns {
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

/**
 * ajv's own optimiser takes most of the time, which grows with the square of a union; the engine does the same work.
 */
const ownCode = { optimize: false } as const;

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

/** Validates against the meta-schema of its draft. */
function checkForm(schema: JsonObject): void {
  const { $schema, ...rest } = schema;
  const ajv = isDraft7(schema) ? draft7 : draft2020;
  if (ajv.validateSchema(rest) !== true) throw new SchemaRefused(ajv.errorsText(ajv.errors, { dataVar: '' }));
}

/** @param budget units of work for the verdict on a value */
export function createSchemaCompiler(budget = verdictBudget): SchemaCompiler {
  const compile = (schema: JsonObject, formats: FormatUse): CompiledSchema => {
    const fault = findSchemaFault(schema);
    if (fault !== null) throw new SchemaRefused(fault);
    const local = withLocalReferences(schema);
    checkForm(local);
    return createCheck(local, { formats, budget });
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

function createCheck(schema: JsonObject, use: Use): CompiledSchema {
  const compilePattern = createPatternCompiler();
  const { $schema, ...body } = toEnforceable(schema, compilePattern).schema;
  const source = { body, isOld: isDraft7(schema) };
  const { listFaults, findCertain } = createFinders(source, { ...use, compilePattern });
  const within: CompiledSchema['within'] = {
    findings: (value, work) => listFaults(value, work, (errors) => errors),
    errors: (value, work) => {
      const found = listFaults(value, work, (errors) => reduceUnions({ schema: body, value, errors }));
      return found?.map(({ pointer, message }) => ({ pointer, message })) ?? null;
    },
  };
  const { budget } = use;
  const check = (value: Json): readonly SchemaError[] =>
    within.errors(value, { left: budget }) ?? [tooMuchWork];
  const find = (value: Json): readonly SchemaFinding[] =>
    within.findings(value, { left: budget }) ?? [{ ...ofTheWhole, ...tooMuchWork }];
  return Object.assign(check, { find, findCertain, within });
}

/** A schema without `$schema`, and whether it is of draft 07. */
interface SchemaSource {
  readonly body: JsonObject;
  readonly isOld: boolean;
}

type ListErrors = (value: Json, budget: number) => readonly ErrorObject[];

/** @returns a function that lists all errors of a value; it compiles the schema for that on first use */
function createErrorList(source: SchemaSource, meter: WorkMeter, settings: Options): ListErrors {
  let detail: ValidateFunction | null = null;
  return (value, budget) => {
    detail ??= compileWith(source, meter, { ...settings, allErrors: true });
    meter.reset(budget);
    return detail(value) ? [] : (detail.errors ?? []);
  };
}

interface Use {
  readonly formats: FormatUse;
  readonly budget: number;
}

interface OwnSettings {
  readonly formats: FormatUse;
  readonly compilePattern: CompilePattern;
}

interface Finders extends Pick<CompiledSchema, 'findCertain'> {
  /** @param reduce selects the errors to describe @returns null when the work does not suffice for a verdict */
  readonly listFaults: (
    value: Json,
    work: CheckWork,
    reduce: ReduceErrors,
  ) => readonly SchemaFinding[] | null;
}

type ReduceErrors = (errors: readonly ErrorObject[]) => readonly ErrorObject[];

function createFinders(source: SchemaSource, own: OwnSettings): Finders {
  const meter = createWorkMeter();
  const code = { ...ownCode, regExp: createLinearPatterns(meter, own.compilePattern) };
  const settings: Options = { ...options, code, validateFormats: own.formats === 'asserted' };
  const settle = compileWith(source, meter, settings);
  const listErrors = createErrorList(source, meter, settings);

  const listFaults: Finders['listFaults'] = (given, work, reduce) => {
    const value = toNearest(given);
    try {
      meter.reset(work.left);
      if (settle(value)) return [];
    } catch (error) {
      if (error instanceof TooMuchWork) return null;
      return [explainDepth(error)];
    } finally {
      work.left = meter.left();
    }
    const first = settle.errors ?? [];
    try {
      const all = listErrors(value, detailBudget);
      return describeSchemaErrors(reduce(all.length > 0 ? all : first));
    } catch (error) {
      if (!(error instanceof TooMuchWork)) explainDepth(error); // or throws
      return describeSchemaErrors(reduce(first)); // if collecting more errors took too long, the first one is enough
    } finally {
      work.left -= detailBudget - meter.left();
    }
  };

  return { findCertain: createCertainFinder(listErrors, meter), listFaults };
}

function createCertainFinder(listErrors: ListErrors, meter: WorkMeter): CompiledSchema['findCertain'] {
  return (value, holes, work) => {
    if (work.left <= 0) return [];
    const budget = Math.min(work.left, detailBudget);
    try {
      return describeSchemaErrors(keepCertain(listErrors(toNearest(value), budget), holes));
    } catch (error) {
      if (!(error instanceof TooMuchWork)) explainDepth(error); // or throws
      return [];
    } finally {
      work.left -= budget - meter.left();
    }
  };
}

function compileWith({ body, isOld }: SchemaSource, meter: WorkMeter, settings: Options): ValidateFunction {
  const ajv = isOld ? new Ajv(settings) : new Ajv2020(settings);
  ajv.opts.unevaluated = hasUnevaluated(body); // tracking costs time and is useless otherwise
  if (settings.validateFormats === true) assertFormats(ajv);
  compareInLinearTime(ajv, meter);
  meterSchemas(ajv, meter, body);
  return ajv.compile(body);
}

function hasUnevaluated(value: Json): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).some(([key, child]) => key.startsWith('unevaluated') || hasUnevaluated(child))
  );
}

const ofTheWhole = { pointer: '', keyword: '', params: {} } as const;

/** The check did not finish, so the value may be invalid. */
export const tooMuchWork: SchemaError = {
  pointer: '',
  message: 'is too much work to check against the schema; it must be smaller',
};

function explainDepth(error: unknown): SchemaFinding {
  if (error instanceof RangeError) return { ...ofTheWhole, message: 'is nested too deeply to be checked' };
  throw error;
}
