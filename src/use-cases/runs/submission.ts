/**
 * Accepts the runs that requests ask for, one or many. One transaction writes the job, the run and the stored answer,
 * so that a repeated request with the same Idempotency-Key gets the same run, even when the process died right after
 * answering.
 *
 * A run that a schedule starts is prepared by the same checks; `schedules/` writes it, at most once for each start.
 */
import type { Problem } from '@capstan/core/contracts/problem';
import type { Run, RunRequest } from '@capstan/core/contracts/run';
import type { BulkAnswer } from '@capstan/core/contracts/run-control';
import { digestDefinition } from '@capstan/core/definitions/submission';
import { AppError, refuseField, toAppError } from '@capstan/core/errors/app-error';
import { Meter, workLimits } from '@capstan/core/expression/meter';
import { batchLabel } from '@capstan/core/money/scoped-budget';
import type { Db } from '../../db/connect.ts';
import type { NewRun, RunOrigin } from '../../db/run/run-columns.ts';
import { checkForRun } from '../../parts/definitions/definition-checks.ts';
import type { KnownDefinition, KnownDefinitions } from '../../parts/definitions/known-definitions.ts';
import { type DeliveryCtx, deliverSoon } from '../../parts/delivery/deliveries.ts';
import { newId } from '../../parts/ids.ts';
import { answerOnce, type Idempotency, type KeepAnswer } from '../idempotency.ts';
import { addBatchBudget, type Batch, lockBatchBudgets } from '../money/scoped-budgets.ts';
import { type AdmissionResult, type Intake, insertAdmittedRun, insertAdmittedRuns } from './admission.ts';
import { type RunToStart, runStarts, startNew } from './delivery.ts';
import { type IntakeCtx, type PreparedRun, prepareRun, readRequest } from './preparation.ts';
import { newRunView } from './run-view.ts';

/** The parts that accept the runs of requests, and start them. */
export type SubmitCtx = IntakeCtx & DeliveryCtx;

export interface Submission {
  readonly run: Run;
  readonly replayed: boolean;
}

/** Who starts a run, and within which limits. */
export interface Starter {
  /** Id of the key or person. */
  readonly by?: string;
  /** The budget of the definition is the most. */
  readonly keepsBudget?: boolean;
  /** The limit of the client for each of its runs. */
  readonly mostUsd?: number | undefined;
}

interface SubmitOrder extends Starter {
  readonly projectId: string;
  readonly request: RunRequest;
  readonly idempotency: Idempotency | null;
}

function waitsItsTurn({ concurrency_key, is_admitted = false }: NewRun): boolean {
  return concurrency_key !== undefined && !is_admitted;
}

function toStart({ known, row }: PreparedRun): RunToStart {
  return {
    run_id: row.run_id,
    project_id: row.project_id,
    pipeline: row.pipeline,
    version: row.version,
    priority: row.priority,
    definition: known.definition,
    reused: [],
    skipped: [],
    dispatch: row.dispatch ?? [],
    state: 'queued',
    control_version: 0,
    budget_version: 0,
  };
}

/** Only the run and its job are written, which needs no surrounding transaction. */
function isOneStatement({ isStored, row, needed }: PreparedRun, idempotency: Idempotency | null): boolean {
  return isStored && idempotency === null && row.concurrency_key === undefined && needed.size === 0;
}

function startedBy({ by, keepsBudget, mostUsd }: Starter) {
  return { ...(by === undefined ? {} : { started_by: by }), keepsBudget, mostUsd };
}

interface TakenRun extends Submission {
  /** The start for Temporal; null: an earlier request has delivered it, or the run waits its turn. */
  readonly start: RunToStart | null;
}

/** Writes the run. */
export async function writeRun(
  ctx: IntakeCtx,
  { projectId, request, idempotency, ...starter }: SubmitOrder,
): Promise<TakenRun> {
  const { db, config } = ctx;
  const starts: RunToStart[] = [];
  const work = async (keep: KeepAnswer): Promise<Run> => {
    const asked = await readRequest(ctx, projectId, request);
    const prepared = await prepareRun(ctx, projectId, { ...asked, ...startedBy(starter) });
    const run = newRunView(prepared.row, prepared.known.definition);
    const write = async (trx: Db): Promise<NewRun> => {
      await keep(trx, 202, run);
      return insertAdmittedRun(trx, prepared, config.OPEN_RUNS_PER_PROJECT);
    };
    const placed = await (isOneStatement(prepared, idempotency) ? write(db) : db.transaction(write));
    if (!waitsItsTurn(placed)) starts.push(toStart(prepared));
    return run;
  };
  const once = { project_id: projectId, request: 'POST /v1/runs', idempotency, work };
  const { answer, replayed } = await answerOnce<Run>(db, once);
  return { run: answer, replayed, start: starts[0] ?? null };
}

/** Submits a run: writes its row, then delivers its start to Temporal. */
export async function submitRun(ctx: SubmitCtx, order: SubmitOrder): Promise<Submission> {
  const { run, replayed, start } = await writeRun(ctx, order);
  if (start !== null) void startNew(ctx, start);
  return { run, replayed };
}

export interface BulkSubmission {
  readonly answer: BulkAnswer;
  readonly replayed: boolean;
}

export interface BulkOrder extends Starter {
  readonly projectId: string;
  /** A request, or the reason why it is invalid. */
  readonly requests: readonly (RunRequest | AppError)[];
  /** The most that all of them may cost together. */
  readonly budgetAllUsd?: number;
  readonly idempotency: Idempotency | null;
  readonly toProblem: (error: AppError) => Problem;
}

/** The most definitions in one request, because the check of each is expensive. */
const mostBodies = 20;

/** Looks up and checks each definition once. */
function rememberFinds({ find, ofBody, ...definitions }: KnownDefinitions): KnownDefinitions {
  const found = new Map<string, Promise<KnownDefinition>>();
  const bodies = new Map<string, Promise<KnownDefinition>>();
  return {
    ...definitions,
    ofBody: async (definition) => {
      const digest = digestDefinition(definition);
      if (!bodies.has(digest) && bodies.size === mostBodies) {
        const message = `more than ${mostBodies} different definitions in one request; store them, and name them`;
        throw new AppError('request_invalid', message);
      }
      const known = bodies.get(digest) ?? ofBody(definition);
      bodies.set(digest, known);
      return known;
    },
    find: (projectId, pipeline, choice) => {
      const name = JSON.stringify([pipeline, choice]);
      const known = found.get(name) ?? find(projectId, pipeline, choice);
      found.set(name, known);
      return known;
    },
  };
}

function rememberChecks(): typeof checkForRun {
  const checked = new Map<string, ReturnType<typeof checkForRun>>();
  return (ctx, projectId, known) => {
    const check = checked.get(known.digest) ?? checkForRun(ctx, projectId, known);
    checked.set(known.digest, check);
    return check;
  };
}

/** @returns each run prepared, or the reason of its refusal */
async function prepareAll(
  ctx: IntakeCtx,
  { projectId, requests, ...starter }: Pick<BulkOrder, 'projectId' | 'requests' | keyof Starter>,
): Promise<readonly (PreparedRun | AppError)[]> {
  const within = { ...ctx, definitions: rememberFinds(ctx.definitions) };
  const check = rememberChecks();
  const meter = new Meter(workLimits.request);
  const prepared: (PreparedRun | AppError)[] = [];
  for (const request of requests) {
    if (request instanceof AppError) {
      prepared.push(request);
      continue;
    }
    try {
      const order = await readRequest(within, projectId, request);
      prepared.push(await prepareRun(within, projectId, { ...order, ...startedBy(starter), check, meter }));
    } catch (error) {
      const refused = toAppError(error);
      if (refused.code === 'internal') throw error;
      prepared.push(refused);
    }
  }
  return prepared;
}

/** The label of a batch is its own, so that no other run draws on its budget by accident. */
function joinBatch(request: RunRequest | AppError, batch: string): RunRequest | AppError {
  if (request instanceof AppError) return request;
  const { labels } = request;
  if (labels !== undefined && Object.hasOwn(labels, batchLabel)) {
    const seen = JSON.stringify(labels[batchLabel]);
    const message = `budget_all_usd gives each run its own label ${batchLabel}; the request gives ${seen}`;
    return refuseField(`/labels/${batchLabel}`, message, 'not_possible');
  }
  return { ...request, labels: { ...labels, [batchLabel]: batch } };
}

/** Null without a common budget. */
function batchOf({ projectId: project_id, budgetAllUsd: limitUsd, by = 'system' }: BulkOrder): Batch | null {
  return limitUsd === undefined ? null : { project_id, id: newId('batch'), limitUsd, by };
}

/** Writes the runs, and the budget of their batch if one of them is accepted. */
async function placeAll(
  trx: Db,
  intake: Intake,
  { sound, batch }: { readonly sound: readonly PreparedRun[]; readonly batch: Batch | null },
): Promise<{ readonly placed: readonly AdmissionResult[]; readonly isBatch: boolean }> {
  if (batch !== null && sound.length > 0) await lockBatchBudgets(trx, batch);
  const placed = await insertAdmittedRuns(trx, intake, sound);
  const isBatch = batch !== null && placed.some((run) => !(run instanceof AppError));
  if (isBatch) await addBatchBudget(trx, batch);
  return { placed, isBatch };
}

/** Accepts or refuses each run separately, and writes all accepted ones in one transaction. */
export async function writeRuns(ctx: IntakeCtx, order: BulkOrder): Promise<BulkSubmission> {
  const { db, config } = ctx;
  const { projectId: project_id, requests, idempotency, toProblem } = order;
  const intake = { project_id, mostOpen: config.OPEN_RUNS_PER_PROJECT };

  const toItem = (placed: AdmissionResult | undefined): BulkAnswer['items'][number] => {
    if (placed === undefined) throw new AppError('internal', 'a run was neither accepted nor refused');
    if (placed instanceof AppError) return { status: placed.status, error: toProblem(placed) };
    return { status: 202, run_id: placed.run_id };
  };

  const work = async (keep: KeepAnswer): Promise<BulkAnswer> => {
    const batch = batchOf(order);
    const joined = batch === null ? requests : requests.map((request) => joinBatch(request, batch.id));
    const prepared = await prepareAll(ctx, { ...order, requests: joined });
    const sound = prepared.filter((run): run is PreparedRun => !(run instanceof AppError));
    return db.transaction(async (trx) => {
      const { placed, isBatch } = await placeAll(trx, intake, { sound, batch });
      const ends = new Map(sound.map((run, index) => [run, placed[index]]));
      const items = prepared.map((run) => toItem(run instanceof AppError ? run : ends.get(run)));
      const answer = { ...(isBatch ? { batch: batch?.id } : {}), items };
      await keep(trx, 200, answer);
      return answer;
    });
  };

  const asked = { project_id, request: 'POST /v1/runs/bulk', idempotency, work };
  return answerOnce(db, asked);
}

export async function submitRuns(ctx: SubmitCtx, order: BulkOrder): Promise<BulkSubmission> {
  const submission = await writeRuns(ctx, order);
  if (submission.replayed) return submission;
  for (const { run_id } of submission.answer.items) {
    if (run_id !== undefined) void deliverSoon(ctx, runStarts, { run_id });
  }
  return submission;
}

export interface OriginatedRun {
  readonly request: RunRequest;
  readonly origin: RunOrigin;
  /** Id of the key or person that asked for it, if any. */
  readonly by?: string;
}

/** Checks all but the limits of open runs. @throws AppError as a request */
export async function prepareOriginatedRun(
  ctx: IntakeCtx,
  projectId: string,
  { request, origin, ...starter }: OriginatedRun,
): Promise<PreparedRun> {
  const order = await readRequest(ctx, projectId, request);
  return prepareRun(ctx, projectId, { ...order, origin, ...startedBy(starter) });
}
