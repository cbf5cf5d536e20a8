/** A capability out of a checked file: its schemas, its price, and the course of one call. */
import { access, constants } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import {
  CallFailure,
  type Capability,
  defineCapability,
  type ExecContext,
  type Prerequisite,
} from '@capstan/capability';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { parseDuration } from '@capstan/core/duration';
import type { WrapScope } from '@capstan/core/expression/evaluation';
import { compileFiles, type FileRules, openCallFiles, withDefaultUploads } from './call-files.ts';
import { asObject, type Evaluate, type WrapCompiler } from './templates.ts';
import type { WrapFile } from './wrap-fields.ts';
import type { PreparedKind } from './wrap-kind.ts';

interface Measure {
  readonly value: Evaluate<number>;
  readonly rateUsd: number;
  readonly per: number;
}

interface Wrapped {
  readonly kind: PreparedKind;
  readonly files: FileRules;
  readonly result: Evaluate<Json>;
  readonly measures: readonly Measure[];
  readonly timeout: { readonly text: string; readonly ms: number };
}

function compileMeasures({ cost }: WrapFile, compile: WrapCompiler): Measure[] {
  return (cost.measured ?? []).map(({ value, rate_usd, per }, at) => ({
    value: compile.number(value, `/cost/measured/${at}/value`),
    rateUsd: rate_usd,
    per,
  }));
}

/** @returns nothing when the answer does not state what it used: the call costs its reservation then */
function measureCost(
  measures: readonly Measure[],
  scope: WrapScope,
  log: ExecContext['log'],
): { cost_usd?: number } {
  if (measures.length === 0) return {};
  try {
    const cost_usd = measures.reduce(
      (sum, { value, rateUsd, per }) => sum + (value(scope) / per) * rateUsd,
      0,
    );
    return { cost_usd: Math.max(0, cost_usd) };
  } catch (error) {
    log.warn(
      `the cost is unknown, the call costs its reservation: ${error instanceof Error ? error.message : error}`,
    );
    return {};
  }
}

async function perform(wrapped: Wrapped, input: JsonObject, context: ExecContext): Promise<JsonObject> {
  const { kind, files: rules, result, measures } = wrapped;
  const startedAt = performance.now();
  const { media, signal, log, idempotencyKey = null } = context;
  const call = { idempotency_key: idempotencyKey };
  const files = await openCallFiles({ rules, kind, media, signal }, { input, files: {}, call });
  const scope = { input, files: files.values, call };
  const answer = await kind.perform({
    scope,
    context,
    paths: files.paths,
    maxFileBytes: rules.maxBytes,
    keep: files.keep,
  });
  const seconds = (performance.now() - startedAt) / 1_000;
  const done = { ...scope, answer, call: { ...call, seconds } };
  const output = asObject(result({ ...done, files: await files.store(done) }));
  if (output === null) throw new CallFailure(502, 'the result is no object', { code: 'answer_unexpected' });
  return { ...output, ...measureCost(measures, done, log) };
}

async function performInTime(wrapped: Wrapped, input: JsonObject, context: ExecContext): Promise<JsonObject> {
  const { text, ms } = wrapped.timeout;
  const limit = AbortSignal.timeout(ms);
  const signal = AbortSignal.any([context.signal, limit]);
  try {
    return await perform(wrapped, input, { ...context, signal });
  } catch (error) {
    if (!limit.aborted || context.signal.aborted) throw error;
    throw new CallFailure(504, `the call took longer than its timeout of ${text}`, {
      code: 'timeout',
      cause: error,
    });
  }
}

async function findProgram(program: string): Promise<string | null> {
  const folders =
    program.includes('/') || isAbsolute(program) ? [''] : (process.env.PATH ?? '').split(delimiter);
  for (const folder of folders) {
    const path = join(folder, program);
    if (
      await access(path, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return path;
  }
  return null;
}

function prerequisiteOf({ program }: PreparedKind): Prerequisite[] {
  if (program === undefined) return [];
  const check = async (): Promise<string | null> => {
    const path = await findProgram(program);
    return path === null ? null : `at ${path}`;
  };
  return [{ name: program, check }];
}

/** The schema stays as written: all instances of one version must have the same, whatever their price. */
function requireCostField(output: JsonObject, compile: WrapCompiler): void {
  const isAllowed =
    output.additionalProperties !== false || Object.hasOwn(Object(output.properties), 'cost_usd');
  if (isAllowed) return;
  const message = 'the schema allows no cost_usd, which a measured call adds to its output';
  const suggestion = 'add the property cost_usd: {type: number}';
  compile.refuse({ code: 'cost_refused', pointer: '/output', message, suggestion });
}

function requireSchemas(
  { kind }: WrapFile,
  schemas: Readonly<Record<string, unknown>>,
  compile: WrapCompiler,
): void {
  for (const [key, schema] of Object.entries(schemas)) {
    if (schema !== undefined) continue;
    compile.refuse({ code: 'key_missing', pointer: '', message: `"${key}" is required for kind ${kind}` });
  }
}

/** @throws Error that names the invalid fields */
export function defineWrapped(file: WrapFile, kind: PreparedKind, compile: WrapCompiler): Capability {
  const { name, version, description, tags, max_concurrency, warm_up, shared_with, deterministic, cost } =
    file;
  const { defaults } = kind;
  const [input, output, written] = [
    file.input ?? defaults.input,
    file.output ?? defaults.output,
    file.result,
  ];
  requireSchemas(file, { input, output }, compile);
  const measures = compileMeasures(file, compile);
  if (measures.length > 0) requireCostField(output ?? {}, compile);
  const wrapped: Wrapped = {
    kind,
    files: withDefaultUploads(compileFiles(file.files, compile), defaults, compile),
    result: compile.value(written ?? defaults.result ?? '{{ answer }}', '/result'),
    measures,
    timeout: { text: file.timeout, ms: parseDuration(file.timeout) },
  };
  const { type, rate_usd, notes } = cost;
  return defineCapability({
    name,
    version,
    description,
    tags,
    max_concurrency,
    ...(warm_up === undefined ? {} : { warm_up }),
    ...(shared_with === undefined ? {} : { shared_with }),
    deterministic,
    cost_model: { type, rate_usd, ...(notes === undefined ? {} : { notes }) },
    settle: measures.length > 0 ? 'reported' : 'computed',
    input: input ?? {},
    output: output ?? {},
    prerequisites: prerequisiteOf(kind),
    exec: (given, context) => performInTime(wrapped, given, context),
  });
}
