/**
 * Turns an order for a run into the checked row of the run. Nothing is written.
 *
 * The dispatch of a run's steps is decided from the router's view of the fleet in memory, without a request to an
 * instance or a query.
 */

import type { DecidedRoute, DispatchRoute } from '@capstan/core/contracts/decision';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { RunRequest } from '@capstan/core/contracts/run';
import { AppError } from '@capstan/core/errors/app-error';
import type { Meter } from '@capstan/core/expression/meter';
import { findMediaJobs, type MediaMention } from '@capstan/core/media';
import { formatUsd } from '@capstan/core/money/nano-usd';
import { chooseDispatch } from '@capstan/core/run/dispatch';
import { ceilingOfRun, priorityOfRun } from '@capstan/core/run/step-rules';
import type { Telemetry } from '@capstan/core/telemetry/telemetry';
import { formatPlace } from '@capstan/core/telemetry/trace-context';
import type { Config } from '../../config.ts';
import type { Db } from '../../db/connect.ts';
import { findJob } from '../../db/run/job.ts';
import type { NewRun, RunOrigin } from '../../db/run/run-columns.ts';
import { checkForRun } from '../../parts/definitions/definition-checks.ts';
import type { CheckCtx } from '../../parts/definitions/definition-facts.ts';
import {
  checkJob,
  choiceOf,
  type JobCheckCtx,
  type KnownDefinition,
  type KnownDefinitions,
  readConcurrencyKey,
  readLabels,
} from '../../parts/definitions/known-definitions.ts';
import { periodOf } from '../../parts/definitions/run-context.ts';
import { turnFor } from '../../parts/expression-work.ts';
import type { ProjectFleet } from '../../parts/fleet/fleet-view.ts';
import { newId } from '../../parts/ids.ts';
import { bindJobMedia, type OwnMedia, refuseForeign } from '../../parts/media/own-media.ts';

export interface RunJob {
  readonly job_id: string;
  readonly body: JsonObject;
  readonly isNew: boolean;
}

/** The columns of a run that are fields of its request. Fields of the same name and form need no line of their own. */
type AskedColumns = Omit<
  RunRequest,
  'pipeline' | 'version' | 'alias' | 'definition' | 'job' | 'job_id' | 'budget_ceiling_usd'
>;

interface RunOrder extends AskedColumns {
  readonly known: KnownDefinition;
  /** The definition is in the database. */
  readonly isStored: boolean;
  readonly job: RunJob;
  /** Null = none; undefined = the definition's. */
  readonly budget_ceiling_usd?: number | null | undefined;
  /** Its key may not start it with more than the definition's. */
  readonly keepsBudget?: boolean | undefined;
  /** The limit of the client, which only lowers the budget. */
  readonly mostUsd?: number | undefined;
  readonly rerun_of?: string;
  readonly started_by?: string;
  /** The jobs whose files the reused results of a rerun name. */
  readonly reusedJobs?: ReadonlyMap<string, MediaMention>;
  readonly origin?: RunOrigin;
  /** For many runs in one request: it caches its checks. */
  readonly check?: typeof checkForRun;
  /** Of a request with many runs. */
  readonly meter?: Meter;
}

export interface PreparedRun extends Pick<RunOrder, 'known' | 'isStored' | 'job'> {
  readonly row: NewRun;
  /**
   * Jobs that must exist when the run is written, its own and the jobs whose files it names, with the error for each.
   */
  readonly needed: ReadonlyMap<string, () => AppError>;
}

/** The parts that accept runs, in both processes: requests in the server, steps and schedules in the worker. */
export interface IntakeCtx extends CheckCtx, JobCheckCtx {
  readonly definitions: KnownDefinitions;
  readonly ownMedia: OwnMedia;
  readonly telemetry: Telemetry;
  readonly config: Pick<Config, 'OPEN_RUNS_PER_PROJECT'>;
}

export function newJob(job: JsonObject): RunJob {
  const job_id = newId('job');
  return { job_id, body: bindJobMedia(job, job_id), isNew: true };
}

/** An existing job. @throws AppError `not_found` */
export async function findRunJob(db: Db, projectId: string, jobId: string): Promise<RunJob> {
  const found = await findJob(db, { project_id: projectId, job_id: jobId });
  if (found === null) throw noSuchJob(jobId);
  return { job_id: jobId, body: found.body, isNew: false };
}

interface NamingJob {
  readonly job_id: string;
  /** Null: unknown as yet. */
  readonly body: JsonObject | null;
}

/** @throws AppError `media_unknown` */
export async function requireOwnMedia(
  { ownMedia }: Pick<IntakeCtx, 'ownMedia'>,
  projectId: string,
  { known, job }: { readonly known: KnownDefinition; readonly job: NamingJob | null },
): Promise<void> {
  const written = await ownMedia.judge(projectId, known.mediaJobs);
  if (written !== null) throw refuseForeign(written, '/definition');
  if (job === null || job.body === null) return;
  const given = await ownMedia.findForeign(projectId, job.body, job.job_id);
  if (given !== null) throw refuseForeign(given, '/job');
}

/** The error for each job that must exist with the run. */
function listNeeded({ known, job, reusedJobs }: RunOrder): PreparedRun['needed'] {
  const needed = new Map<string, () => AppError>();
  const need = (mentions: ReadonlyMap<string, MediaMention>, pointer: string): void => {
    for (const [jobId, mention] of mentions) needed.set(jobId, () => refuseForeign(mention, pointer));
  };
  need(known.mediaJobs, '/definition');
  // A rerun may reuse the results of all steps that read missing files.
  if (reusedJobs === undefined) need(findMediaJobs(job.body), '/job');
  if (reusedJobs !== undefined) need(reusedJobs, '/from');
  needed.delete(job.job_id);
  if (!job.isNew) needed.set(job.job_id, () => noSuchJob(job.job_id));
  return needed;
}

function noSuchJob(jobId: string): AppError {
  return new AppError('not_found', `there is no job ${jobId}`);
}

/** @throws AppError `job_invalid` when the job does not give the key, or a label */
function readFromJob(
  { known, job, meter, labels, origin }: Pick<RunOrder, 'known' | 'job' | 'meter' | 'labels' | 'origin'>,
  runId: string,
): Pick<NewRun, 'concurrency_key' | 'concurrency_limit' | 'labels'> {
  const { concurrency, pipeline, version } = known.definition;
  const { job_id, body } = job;
  const scheduled = periodOf(origin ?? {});
  const scope = { job: body, run: { id: runId, job_id, attempt: 1, pipeline, version, ...scheduled } };
  const key = readConcurrencyKey(known, scope, meter);
  return {
    labels: { ...readLabels(known, scope, meter), ...labels },
    ...(key === null || concurrency === undefined
      ? {}
      : { concurrency_key: key, concurrency_limit: concurrency.limit }),
  };
}

/** Places the run in the trace of the request or step that starts it. */
function placeInTrace({ tracing }: Telemetry, runId: string): Pick<NewRun, 'trace_parent'> {
  const parent = tracing.current()?.traceOfRun(runId) ?? null;
  return parent === null ? {} : { trace_parent: formatPlace(parent) };
}

function atMost(mostUsd: number, ceilingUsd: number | null): number | null {
  return ceilingUsd === null && mostUsd === Number.POSITIVE_INFINITY
    ? null
    : Math.min(mostUsd, ceilingUsd ?? mostUsd);
}

/** @throws AppError `forbidden` when more is asked than the definition has */
function requireBudget(
  { pipeline, budget_ceiling_usd: own }: PipelineDefinition,
  asked: number | null | undefined,
): void {
  if (own == null || asked == null || asked <= own) return;
  const message = `the key may start ${pipeline} with its budget of ${formatUsd(own)} or less; asked: ${formatUsd(asked)}`;
  throw new AppError('forbidden', message);
}

/** @throws AppError `job_invalid`, `media_unknown`, `definition_invalid` when it cannot run now, `forbidden` */
export async function prepareRun(ctx: IntakeCtx, projectId: string, order: RunOrder): Promise<PreparedRun> {
  const { known, job, isStored, reusedJobs, origin, check = checkForRun, meter: _, ...rest } = order;
  const { keepsBudget, mostUsd = Number.POSITIVE_INFINITY, ...asked } = rest;
  const { definition, digest } = known;
  if (keepsBudget === true) requireBudget(definition, asked.budget_ceiling_usd);
  await checkJob(ctx, known, job.body);
  await requireOwnMedia(ctx, projectId, { known, job: job.isNew ? job : null });
  const { specs } = await check(ctx, projectId, { definition, digest });
  const isOpen = definition.concurrency !== undefined || known.openLabels.length > 0;
  const turn = isOpen ? turnFor() : null;
  if (turn !== null) await turn;
  const run_id = newId('run');
  const { pipeline, version } = definition;
  const dispatch = decideDispatch(ctx.fleet.seenBy(projectId), known.openRoutes);
  const row: NewRun = {
    ...asked,
    ...(asked.started_by === undefined ? {} : { key_id: asked.started_by }),
    ...origin,
    run_id,
    project_id: projectId,
    job_id: job.job_id,
    pipeline,
    version,
    digest,
    specs,
    priority: priorityOfRun(definition, asked.priority),
    budget_ceiling_usd: atMost(mostUsd, ceilingOfRun(definition, asked.budget_ceiling_usd)),
    ...(dispatch.length === 0 ? {} : { dispatch }),
    ...readFromJob(order, run_id),
    ...placeInTrace(ctx.telemetry, run_id),
  };
  return { row, known, isStored, job, needed: listNeeded(order) };
}

/** Finds the definition and the job that a request names. @throws AppError `not_found`, `definition_invalid` */
export async function readRequest(
  { db, definitions }: Pick<IntakeCtx, 'db' | 'definitions'>,
  projectId: string,
  request: RunRequest,
): Promise<RunOrder> {
  const { definition, pipeline = '', job_id, job = {}, version: _version, alias: _alias, ...asked } = request;
  const known =
    definition === undefined
      ? await definitions.find(projectId, pipeline, choiceOf(request))
      : await definitions.ofBody(definition);
  return {
    known,
    isStored: definition === undefined,
    job: job_id === undefined ? newJob(job) : await findRunJob(db, projectId, job_id),
    ...asked,
  };
}

/**
 * Decides whether the steps of a run are queued, from the router's view of the fleet in memory. It decides once per
 * run, so a capability that has become slow is queued from the next run on.
 */
export function decideDispatch(
  fleet: Pick<ProjectFleet, 'of'>,
  routes: readonly DispatchRoute[],
): readonly DecidedRoute[] {
  return routes.map((route) => {
    const { capability, capability_version: versionRange = null, tags = [] } = route;
    return { ...route, ...chooseDispatch(fleet.of(capability).instances, { versionRange, tags }) };
  });
}
