/** A capability out of a checked file: its schemas, its price, and the course of one call. */
import { type Capability, defineCapability, type ExecContext, type Prerequisite } from '@capstan/capability';
import { CallFailure, isCallFailure } from '@capstan/capability/call-failure';
import { findExecutable } from '@capstan/capability/lifecycle/prerequisites';
import type { Schema } from '@capstan/capability/schema';
import type { CostModel, FailureReport } from '@capstan/core/contracts/capability';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { parseDuration } from '@capstan/core/duration';
import type { WrapScope } from '@capstan/core/expression/evaluation';
import { compileFiles, type FileRules, openCallFiles, withDefaultUploads } from './call-files.ts';
import { createWorkLimit } from './exchange/work-limit.ts';
import { asObject, type Evaluate, type WrapCompiler } from './templates.ts';
import type { WrapFile } from './wrap-fields.ts';
import type { PreparedKind, WrapHost } from './wrap-kind.ts';

interface Measure {
  readonly value: Evaluate<number>;
  readonly rateUsd: number;
  readonly per: number;
}

interface Wrapped {
  /** That of the file. */
  readonly folder: string;
  readonly kind: PreparedKind;
  readonly files: FileRules;
  readonly result: Evaluate<Json>;
  readonly measures: readonly Measure[];
  readonly timeout: { readonly text: string; readonly ms: number };
  /** The most that is counted. */
  readonly rateUsd: number;
}

function compileMeasures({ cost }: WrapFile, compile: WrapCompiler): Measure[] {
  return (cost.measured ?? []).map(({ value, rate_usd, per }, at) => ({
    value: compile.number(value, `/cost/measured/${at}/value`),
    rateUsd: rate_usd,
    per,
  }));
}

interface MeasuredCall {
  readonly scope: WrapScope;
  readonly log: ExecContext['log'];
  /** When it began, Unix ms. */
  readonly at: number;
}

/** @returns nothing when the answer does not state what it used: the call costs its reservation then */
function measureCost(wrapped: Wrapped, { scope, log, at }: MeasuredCall): { cost_usd?: number } {
  try {
    const cost_usd = costOf(wrapped, scope, at);
    if (cost_usd === null) return {};
    const { rateUsd } = wrapped;
    if (cost_usd > rateUsd) log(`a call cost ${cost_usd} USD; only the rate_usd, ${rateUsd}, is counted`);
    return { cost_usd };
  } catch (error) {
    log.warn(
      `the cost is unknown, the call costs its reservation: ${error instanceof Error ? error.message : error}`,
    );
    return {};
  }
}

/** Null: nothing measures it. @throws Error when the answer does not state what it used */
function costOf({ kind, measures }: Wrapped, scope: WrapScope, at: number): number | null {
  if (kind.price !== undefined) return kind.price.costOf(scope.answer ?? null, at);
  if (measures.length === 0) return null;
  const sum = measures.reduce((cost, { value, rateUsd, per }) => cost + (value(scope) / per) * rateUsd, 0);
  return Math.max(0, sum);
}

/** A call that fails has cost what its answer used. A model that was asked and reports nothing has an unknown cost. */
function withMeasuredCost(error: unknown, wrapped: Wrapped, call: MeasuredCall): unknown {
  const failure = isCallFailure(error) ? error : new CallFailure(422, messageOf(error), { cause: error });
  const { cost_usd: known, usage } = failure.report ?? {};
  if (known !== undefined) return error;
  const { scope } = call;
  const answer = scope.answer ?? (usage === undefined ? undefined : { usage });
  const { cost_usd } =
    answer === undefined ? {} : measureCost(wrapped, { ...call, scope: { ...scope, answer } });
  if (cost_usd !== undefined) return withReport(failure, { cost_usd });
  return wrapped.kind.price === undefined ? error : withReport(failure, { cost_unknown: true });
}

function withReport(failure: CallFailure, cost: FailureReport): CallFailure {
  const { status, message, retryAfterS, code, cause, report } = failure;
  return new CallFailure(status, message, { retryAfterS, code, cause, report: { ...report, ...cost } });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function perform(wrapped: Wrapped, input: JsonObject, context: ExecContext): Promise<JsonObject> {
  const { folder, kind, files: rules, result } = wrapped;
  const [at, startedAt] = [Date.now(), performance.now()];
  const { media, signal, log, idempotencyKey = null } = context;
  const call = { idempotency_key: idempotencyKey };
  const files = await openCallFiles({ rules, kind, media, signal }, { input, files: {}, call, folder });
  let scope: WrapScope = { input, files: files.values, call, folder };
  try {
    const answer = await kind.perform({
      scope,
      context,
      paths: files.paths,
      maxFileBytes: rules.maxBytes,
      keep: files.keep,
    });
    const seconds = (performance.now() - startedAt) / 1_000;
    const done = { ...scope, answer, call: { ...call, seconds } };
    scope = done;
    const output = asObject(result({ ...done, files: await files.store(done) }));
    if (output === null) throw new CallFailure(502, 'the result is no object', { code: 'answer_unexpected' });
    return { ...output, ...measureCost(wrapped, { scope: done, log, at }) };
  } catch (error) {
    throw withMeasuredCost(error, wrapped, { scope, log, at });
  }
}

/** @throws CallFailure when the deadline of the caller has passed */
function limitOf(
  { timeout }: Wrapped,
  deadline: Date | undefined,
): { readonly ms: number; readonly text: string } {
  const leftMs = deadline === undefined ? Number.POSITIVE_INFINITY : deadline.getTime() - Date.now();
  if (leftMs <= 0) {
    throw new CallFailure(504, 'the deadline of the call has passed', {
      code: 'timeout',
      report: { cost_usd: 0 },
    });
  }
  if (leftMs >= timeout.ms) return { ms: timeout.ms, text: `its timeout of ${timeout.text}` };
  return { ms: leftMs, text: `the ${Math.ceil(leftMs)} ms until its deadline` };
}

async function performInTime(wrapped: Wrapped, input: JsonObject, context: ExecContext): Promise<JsonObject> {
  const { text, ms } = limitOf(wrapped, context.deadline);
  const limit = createWorkLimit(context.signal, ms);
  try {
    return await perform(wrapped, input, { ...context, signal: limit.signal });
  } catch (error) {
    if (!limit.isOver) throw error;
    const { report } = isCallFailure(error) ? error : {};
    throw new CallFailure(504, `the call took longer than ${text}`, {
      code: 'timeout',
      cause: error,
      report,
    });
  } finally {
    limit.end();
  }
}

function prerequisiteOf({ program }: PreparedKind, { environment }: WrapHost): Prerequisite[] {
  if (program === undefined) return [];
  const check = async (): Promise<string | null> => {
    const path = findExecutable(program, environment);
    return path === null ? null : `at ${path}`;
  };
  return [{ name: program, check }];
}

/** The schema stays as written: all instances of one version must have the same, whatever their price. */
function requireCostField(output: Schema, compile: WrapCompiler): void {
  const { additionalProperties, properties } = output as JsonObject;
  const isAllowed = additionalProperties !== false || Object.hasOwn(Object(properties), 'cost_usd');
  if (isAllowed) return;
  const message = 'the schema allows no cost_usd, which a measured call adds to its output';
  const suggestion = 'add the property cost_usd: {type: number}';
  compile.refuse({ code: 'cost_refused', pointer: '/output', message, suggestion });
}

function requireOnePrice({ cost }: WrapFile, { price }: PreparedKind, compile: WrapCompiler): void {
  if (price === undefined || cost.measured === undefined) return;
  const message = 'a call is measured by the prices of the model, or by this list, and not by both';
  compile.refuse({ code: 'cost_refused', pointer: '/cost/measured', message });
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

function prepareCall(file: WrapFile, kind: PreparedKind, { compile, folder }: WrapHost): Wrapped {
  const { defaults } = kind;
  const measures = compileMeasures(file, compile);
  const timeout = file.timeout ?? defaults.timeout ?? defaultTimeout;
  return {
    folder,
    kind,
    files: withDefaultUploads(compileFiles(file.files, compile), defaults, compile),
    result: compile.value(file.result ?? defaults.result ?? '{{ answer }}', '/result'),
    measures,
    timeout: { text: timeout, ms: parseDuration(timeout) },
    rateUsd: file.cost.rate_usd,
  };
}

function costModelOf({ cost, stops }: WrapFile, { price }: PreparedKind): CostModel {
  const { type, rate_usd, notes } = cost;
  return {
    type,
    rate_usd,
    ...(price === undefined ? {} : { worst_case: price.worstCase, price_source: price.source }),
    ...(stops && price?.growth ? { start: price.growth.start, per_token: price.growth.perToken } : {}),
    ...(notes === undefined ? {} : { notes }),
  };
}

/** A request of a client has no place in schemas and expressions of a file. */
function protocolsOf(
  { input, output, result }: WrapFile,
  { protocols = [] }: PreparedKind,
): { readonly protocols?: readonly string[] } {
  const isOwn = input !== undefined || output !== undefined || result !== undefined;
  return isOwn || protocols.length === 0 ? {} : { protocols };
}

const defaultTimeout = '5m';

/** @throws Error that names the invalid fields */
export function defineWrapped(file: WrapFile, kind: PreparedKind, host: WrapHost): Capability {
  const { compile } = host;
  const { name, version, description, tags, max_concurrency, warm_up, shared_with, deterministic, stops } =
    file;
  const { affinity, max_resident } = file;
  const { input = kind.defaults.input, output = kind.defaults.output } = file;
  requireSchemas(file, { input, output }, compile);
  requireOnePrice(file, kind, compile);
  const wrapped = prepareCall(file, kind, host);
  const isMeasured = wrapped.measures.length > 0 || kind.price !== undefined;
  if (isMeasured) requireCostField(output ?? {}, compile);
  return defineCapability({
    name,
    version,
    description,
    tags,
    max_concurrency,
    ...(warm_up === undefined ? {} : { warm_up }),
    ...(shared_with === undefined ? {} : { shared_with }),
    ...(affinity === undefined ? {} : { affinity }),
    ...(max_resident === undefined ? {} : { max_resident }),
    deterministic,
    stops,
    ...protocolsOf(file, kind),
    cost_model: costModelOf(file, kind),
    settle: isMeasured ? 'reported' : 'computed',
    input: input ?? {},
    output: output ?? {},
    prerequisites: prerequisiteOf(kind, host),
    exec: (given, context) => performInTime(wrapped, given as JsonObject, context),
  });
}
