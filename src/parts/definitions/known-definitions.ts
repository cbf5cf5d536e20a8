/**
 * Reads, compiles and checks the definitions that runs are started from, once per process, by digest: a definition
 * never changes. The available capabilities do change, and are checked for every run. A job is checked against its
 * schema only after vetting: the schemas of stored definitions were vetted.
 *
 * A run that Temporal could not carry is refused, because its plan is part of one payload: an error at submission is
 * better than a run that can never start.
 */
import { mostSteps } from '@capstan/core/contracts/bounds';
import type { DecidedRoute, DispatchRoute } from '@capstan/core/contracts/decision';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { RunRequest } from '@capstan/core/contracts/run';
import { compileDefinition } from '@capstan/core/definition/compile';
import { findUnstorableText } from '@capstan/core/definitions/read-definition';
import { digestDefinition } from '@capstan/core/definitions/submission';
import { createTextCache } from '@capstan/core/definitions/text-cache';
import { AppError } from '@capstan/core/errors/app-error';
import { evaluateTemplate } from '@capstan/core/expression/evaluate';
import type { ExpressionScope } from '@capstan/core/expression/evaluation';
import { ExpressionError } from '@capstan/core/expression/language';
import { Meter, workLimits } from '@capstan/core/expression/meter';
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
  /** @throws AppError `job_invalid` with pointers into the job, `definition_invalid` */
  readonly checkJob: (job: JsonObject) => Promise<void>;
  /** Jobs whose files the definition itself names, with pointers into the definition. */
  readonly mediaJobs: ReadonlyMap<string, MediaMention>;
  /** Routes of steps whose dispatch is open, each once. */
  readonly openRoutes: readonly DispatchRoute[];
  /**
   * The key by which runs are counted; null = they are not. @throws AppError `job_invalid` when the job does not give
   * it
   */
  readonly concurrencyKey: (job: JsonObject, run: ExpressionScope['run'], meter?: Meter) => string | null;
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

type JobSchemas = Pick<SchemaValidator, 'ofSchema'>;

function createJobCheck(
  validator: JobSchemas,
  { job_schema }: PipelineDefinition,
): KnownDefinition['checkJob'] {
  return async (job) => {
    if (job_schema !== undefined) requireFit(await findJobErrors(validator, job_schema, job));
  };
}

async function findJobErrors(
  validator: JobSchemas,
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

function prepareDefinition(
  validator: JobSchemas,
  definition: PipelineDefinition,
  digest: string,
): KnownDefinition {
  requireStartable(definition);
  return {
    definition,
    digest,
    checkJob: createJobCheck(validator, definition),
    mediaJobs: findWrittenMedia(definition),
    openRoutes: listOpenRoutes(definition),
    concurrencyKey: createKeyReader(definition),
  };
}

export type KnownDefinitions = ReturnType<typeof createKnownDefinitions>;

export function createKnownDefinitions(
  ctx: Pick<CheckCtx, 'db' | 'vetter'> & { readonly validator: JobSchemas },
) {
  const { db, validator } = ctx;
  const known = createTextCache<KnownDefinition>();

  const prepare = (definition: PipelineDefinition, digest: string): KnownDefinition => {
    const prepared = prepareDefinition(validator, definition, digest);
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
    find: async (
      project_id: string,
      pipeline: string,
      choice: VersionChoice | null,
    ): Promise<KnownDefinition> => {
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

const longestKey = 256;

function requireKey(value: Json): string {
  const isScalar = ['string', 'number', 'boolean'].includes(typeof value);
  if (!isScalar) throw new AppError('job_invalid', 'concurrency.key is not a string, number or boolean');
  const key = String(value);
  if (key.length > longestKey) {
    throw new AppError(
      'job_invalid',
      `concurrency.key has ${key.length} characters; at most ${longestKey} are allowed`,
    );
  }
  if (findUnstorableText(key) === null) return key;
  throw new AppError('job_invalid', 'concurrency.key holds a NUL character or half of a surrogate pair');
}

function createKeyReader(definition: PipelineDefinition): KnownDefinition['concurrencyKey'] {
  const template = definition.concurrency === undefined ? null : compileDefinition(definition).concurrencyKey;
  if (template === null) return () => null;
  return (job, run, all) => {
    const meter = all === undefined ? new Meter(workLimits.key) : all.part(workLimits.key);
    try {
      return requireKey(evaluateNow(meter, () => evaluateTemplate(template, { job, run, steps: {} }, meter)));
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      if (error.isTooLarge) throw refuseWork(error, 'concurrency.key');
      throw new AppError('job_invalid', `concurrency.key: ${error.message}`);
    } finally {
      all?.count(meter);
    }
  };
}
