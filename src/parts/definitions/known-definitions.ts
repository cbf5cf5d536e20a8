/**
 * Reads, compiles and checks the definitions that runs are started from, once per process, by digest: a definition
 * never changes. The available capabilities do change, and are checked for every run. A job is checked against its
 * schema only after vetting: the schemas of stored definitions were vetted.
 *
 * A run that Temporal could not carry is refused, because its plan is part of one payload: an error at submission is
 * better than a run that can never start.
 */

import type { DecidedRoute, DispatchRoute } from '@capstan/core/contracts/decision';
import { mostSteps } from '@capstan/core/contracts/limits';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { RunRequest } from '@capstan/core/contracts/run';
import { type CompiledDefinition, compileDefinition } from '@capstan/core/definition/compile';
import { findUnstorableText } from '@capstan/core/definitions/read-definition';
import { digestDefinition } from '@capstan/core/definitions/submission';
import { createTextCache } from '@capstan/core/definitions/text-cache';
import { AppError } from '@capstan/core/errors/app-error';
import { evaluateTemplate } from '@capstan/core/expression/evaluate';
import type { ExpressionScope } from '@capstan/core/expression/evaluation';
import { delimiters, ExpressionError } from '@capstan/core/expression/language';
import { Meter, workLimits } from '@capstan/core/expression/meter';
import type { CompiledTemplate } from '@capstan/core/expression/template';
import { summarizeFindings } from '@capstan/core/json/values';
import { findWrittenMediaJobs, type MediaMention } from '@capstan/core/media';
import { listOpenRoutes } from '@capstan/core/run/dispatch';
import { planRun, type RunPlan } from '@capstan/core/run/plan';
import { SchemaRefused } from '@capstan/core/schemas/schema-compiler';
import type { SchemaError } from '@capstan/core/schemas/schema-errors';
import { findDigest, readDefinition, type VersionChoice } from '../../db/pipeline.ts';
import { evaluateNow, refuseWork } from '../expression-work.ts';
import type { SchemaValidator } from '../fleet/specs.ts';
import { requireSound } from './definition-checks.ts';
import type { CheckCtx } from './definition-facts.ts';

/** Temporal refuses payloads of 2 MiB. */
const largestPlanBytes = 1_500_000;

/** The plan of a run whose optional routes are all inline, which is the largest. */
function largestPlan(definition: PipelineDefinition): RunPlan {
  const dispatch = listOpenRoutes(definition).map(
    (route): DecidedRoute => ({ ...route, how: 'inline', code: 'short' }),
  );
  return planRun(definition, { dispatch });
}

/** @throws AppError `definition_invalid` */
function requireStartable(definition: PipelineDefinition): void {
  const { length } = definition.steps;
  if (length > mostSteps) {
    throw new AppError('definition_invalid', `the run has ${length} steps; at most ${mostSteps} are allowed`);
  }
  const bytes = Buffer.byteLength(JSON.stringify(largestPlan(definition)));
  if (bytes <= largestPlanBytes) return;
  throw new AppError(
    'definition_invalid',
    `the ids and dependencies of the steps have ${bytes} bytes; at most ${largestPlanBytes} are allowed`,
  );
}

export interface KnownDefinition {
  readonly definition: PipelineDefinition;
  readonly digest: string;
  /** Jobs whose files the definition itself names, with pointers into the definition. */
  readonly mediaJobs: ReadonlyMap<string, MediaMention>;
  /** Routes of steps whose dispatch is open, each once. */
  readonly openRoutes: readonly DispatchRoute[];
  /** Of the key by which runs are counted; null = they are not. */
  readonly concurrencyKey: CompiledDefinition['concurrencyKey'];
  /** Labels that hold expressions over the job. */
  readonly openLabels: CompiledDefinition['labels'];
}

/** The version that a request, or a schedule, names. */
export function choiceOf({ version, alias }: Pick<RunRequest, 'version' | 'alias'>): VersionChoice | null {
  if (version !== undefined) return { version };
  return alias === undefined ? null : { alias };
}

function describeChoice(pipeline: string, choice: VersionChoice | null): string {
  if (choice === null) return `pipeline ${pipeline}`;
  if ('version' in choice) return `version ${choice.version} of a pipeline ${pipeline}`;
  if ('alias' in choice) return `alias ${choice.alias} of a pipeline ${pipeline}`;
  return `version or alias ${choice.reference} of a pipeline ${pipeline}`;
}

export interface JobCheckCtx {
  readonly validator: Pick<SchemaValidator, 'ofSchema'>;
}

/** @throws AppError `job_invalid` with pointers into the job, `definition_invalid` */
export async function checkJob(
  { validator }: JobCheckCtx,
  { definition: { job_schema } }: Pick<KnownDefinition, 'definition'>,
  job: JsonObject,
): Promise<void> {
  if (job_schema !== undefined) requireFit(await findJobErrors(validator, job_schema, job));
}

async function findJobErrors(
  validator: JobCheckCtx['validator'],
  schema: JsonObject,
  job: JsonObject,
): Promise<readonly SchemaError[]> {
  try {
    return await validator.ofSchema(schema)(job);
  } catch (error) {
    if (!(error instanceof SchemaRefused)) throw error;
    throw new AppError('definition_invalid', `job_schema: ${error.message}`);
  }
}

const nothingOpen = { concurrencyKey: null, labels: [] };

function prepareDefinition(definition: PipelineDefinition, digest: string): KnownDefinition {
  requireStartable(definition);
  const isCounted = definition.concurrency !== undefined;
  const isLabelled = Object.values(definition.labels ?? {}).some((text) => text.includes(delimiters.open));
  const { concurrencyKey, labels } = isCounted || isLabelled ? compileDefinition(definition) : nothingOpen;
  return {
    definition,
    digest,
    mediaJobs: findWrittenMedia(definition),
    openRoutes: listOpenRoutes(definition),
    concurrencyKey,
    openLabels: labels,
  };
}

export type KnownDefinitions = ReturnType<typeof createKnownDefinitions>;

export function createKnownDefinitions(ctx: Pick<CheckCtx, 'db' | 'vetter'>) {
  const { db } = ctx;
  const known = createTextCache<KnownDefinition>();

  const prepare = (definition: PipelineDefinition, digest: string): KnownDefinition => {
    const prepared = prepareDefinition(definition, digest);
    known.set(digest, prepared, definition);
    return prepared;
  };

  const ofDigest = async (digest: string): Promise<KnownDefinition> => {
    const found = known.get(digest);
    if (found !== undefined) return found;
    const definition = await readDefinition(db, digest);
    if (definition === undefined) throw new AppError('not_found', `there is no definition ${digest}`);
    return prepare(definition, digest);
  };

  return {
    /** @throws AppError `not_found`, `definition_invalid` */
    ofDigest,
    /** A stored version; null = the latest. @throws AppError `not_found`, `definition_invalid` */
    find: async (project_id: string, pipeline: string, choice: VersionChoice | null) => {
      const found = await findDigest(db, { project_id, pipeline }, choice);
      if (found === undefined) throw new AppError('not_found', `no ${describeChoice(pipeline, choice)}`);
      return ofDigest(found.digest);
    },
    /** A definition inside another document. @throws AppError `definition_invalid` */
    ofBody: async (definition: PipelineDefinition): Promise<KnownDefinition> => {
      const digest = digestDefinition(definition);
      const found = known.get(digest);
      if (found !== undefined) return found;
      await requireSound(ctx, definition);
      return prepare(definition, digest);
    },
  };
}

/** Searches the steps' own inputs and lists. */
function findWrittenMedia({ steps }: PipelineDefinition): ReadonlyMap<string, MediaMention> {
  const given = steps.map(({ input = null, for_each = null }) => ({ input, for_each }));
  return findWrittenMediaJobs({ steps: given } as unknown as JsonObject);
}

function requireFit(errors: readonly SchemaError[]): void {
  if (errors.length === 0) return;
  throw new AppError('job_invalid', `the job does not match job_schema: ${summarizeFindings(errors)}`, {
    errors: errors.map(({ pointer, message }) => ({
      pointer: `/job${pointer}`,
      code: 'schema_mismatch',
      message,
    })),
  });
}

/** Of a concurrency key, and of a label. */
const longestText = 256;

function requireText(value: Json, place: string): string {
  const isScalar = ['string', 'number', 'boolean'].includes(typeof value);
  if (!isScalar) throw new AppError('job_invalid', `${place} is not a string, number or boolean`);
  const text = String(value);
  if (text.length > longestText) {
    const message = `${place} has ${text.length} characters; at most ${longestText} are allowed`;
    throw new AppError('job_invalid', message);
  }
  if (findUnstorableText(text) === null) return text;
  throw new AppError('job_invalid', `${place} holds a NUL character or half of a surrogate pair`);
}

/** The values that templates outside of steps may read. */
type StartScope = Pick<ExpressionScope, 'job' | 'run'>;

interface StartText {
  /** Its key in the definition. */
  readonly place: string;
  readonly template: CompiledTemplate;
}

/** @throws AppError `job_invalid` when the job does not give it */
function readText({ place, template }: StartText, scope: StartScope, all: Meter | undefined): string {
  const meter = all === undefined ? new Meter(workLimits.key) : all.part(workLimits.key);
  try {
    const value = evaluateNow(meter, () => evaluateTemplate(template, { ...scope, steps: {} }, meter));
    return requireText(value, place);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    if (error.isTooLarge) throw refuseWork(error, place);
    throw new AppError('job_invalid', `${place}: ${error.message}`);
  } finally {
    all?.count(meter);
  }
}

/**
 * @param all of a request with many runs
 * @returns the key by which the run is counted; null: it is not
 * @throws AppError `job_invalid` when the job does not give it
 */
export function readConcurrencyKey(
  { concurrencyKey: template }: Pick<KnownDefinition, 'concurrencyKey'>,
  scope: StartScope,
  all?: Meter,
): string | null {
  return template === null ? null : readText({ place: 'concurrency.key', template }, scope, all);
}

/**
 * @param all of a request with many runs
 * @returns the labels that the definition gives its run
 * @throws AppError `job_invalid` when the job does not give one
 */
export function readLabels(
  { definition, openLabels }: Pick<KnownDefinition, 'definition' | 'openLabels'>,
  scope: StartScope,
  all?: Meter,
): Readonly<Record<string, string>> {
  const open = openLabels.map(([name, template]): readonly [string, string] => [
    name,
    readText({ place: `label ${name}`, template }, scope, all),
  ]);
  return { ...definition.labels, ...Object.fromEntries(open) };
}
