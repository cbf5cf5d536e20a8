/**
 * Repeats a run: the same job, or another one, with reusable results taken over by value. Preview and run decide by the
 * same rule, and a preview writes nothing.
 */
import { parseMediaReference } from '../../contracts/media.ts';
import type { ProblemItem } from '../../contracts/problem.ts';
import { type Run, terminalRunStates } from '../../contracts/run.ts';
import type { RerunPreview, RerunRequest } from '../../contracts/run-control.ts';
import type { ScheduleRequest } from '../../contracts/schedule.ts';
import { compileDefinition } from '../../core/definition/compile.ts';
import { findMediaJobs, type MediaMention } from '../../core/media.ts';
import { createNameSuggester } from '../../core/nearest-name.ts';
import { chooseReused, type Repetition, type ReuseChoice } from '../../core/run/choose-reused.ts';
import {
  copySteps,
  keepRepeated,
  listMentionedMedia,
  type MentionedMedia,
  type RepeatedRun,
  readRepeatedRun,
  readStepStates,
} from '../../db/run/run-control.ts';
import { readSchedule } from '../../db/schedule.ts';
import { AppError, refuseRequest } from '../../errors/app-error.ts';
import type { Ctx } from '../context.ts';
import { deliverSoon } from '../delivery/deliveries.ts';
import { answerOnce, type Idempotency, type KeepAnswer } from '../idempotency.ts';
import { insertAdmittedRun } from './admission.ts';
import { choiceOf, type KnownDefinition, type KnownDefinitions } from './definitions.ts';
import { runStarts } from './delivery.ts';
import { newJob, prepareRun, type RunJob } from './preparation.ts';
import { newRunView, noSuchRun } from './run-view.ts';
import type { Submission, SubmitCtx } from './submission.ts';

type RerunCtx = SubmitCtx & Pick<Ctx, 'media'>;

export interface RerunOrder {
  readonly project_id: string;
  readonly run_id: string;
  readonly request: RerunRequest;
  readonly idempotency: Idempotency | null;
  /** Id of the submitting key or person. */
  readonly by: string;
}

interface Rerun {
  readonly before: RepeatedRun;
  readonly known: KnownDefinition;
  readonly job: RunJob;
  readonly choice: ReuseChoice;
  /** Jobs whose files the reused results name. */
  readonly reusedJobs: ReadonlyMap<string, MediaMention>;
}

const headsAtOnce = 32;

async function readBefore({ db }: Pick<Ctx, 'db'>, { project_id, run_id }: RerunOrder): Promise<RepeatedRun> {
  const before = await readRepeatedRun(db, { project_id, run_id });
  if (before === undefined) throw noSuchRun(run_id);
  return before;
}

/** @throws AppError `request_invalid` for steps that the definition does not have */
function requireSteps(from: readonly string[], known: KnownDefinition): void {
  const ids = new Set(known.definition.steps.map(({ id }) => id));
  const suggest = createNameSuggester(ids);
  const errors = from.flatMap((id, index): ProblemItem[] => {
    if (ids.has(id)) return [];
    const suggestion = suggest(id);
    const found = { pointer: `/from/${index}`, code: 'unknown_step', message: `there is no step ${id}` };
    return [suggestion === undefined ? found : { ...found, suggestion }];
  });
  if (errors.length > 0) throw refuseRequest(errors);
}

/** The first missing file, by the step whose result names it. */
async function findMissing(
  { media, ownMedia }: Pick<Ctx, 'media' | 'ownMedia'>,
  projectId: string,
  mentioned: readonly MentionedMedia[],
): Promise<ReadonlyMap<string, string>> {
  const missing = new Map<string, string>();
  for (let at = 0; at < mentioned.length; at += headsAtOnce) {
    await Promise.all(
      mentioned.slice(at, at + headsAtOnce).map(async ({ step_id, reference }) => {
        const path = parseMediaReference(reference);
        if (path === null) return;
        // For a file that is not the project's, its absence is not revealed either.
        const isForeign = (await ownMedia.findForeign(projectId, reference)) !== null;
        if (isForeign || !(await media.exists(path))) missing.set(step_id, reference);
      }),
    );
  }
  return missing;
}

/** Files are looked for only where everything else allows reuse. */
async function choose(
  ctx: RerunCtx,
  before: RepeatedRun,
  repetition: Omit<Repetition, 'missing'>,
): Promise<Pick<Rerun, 'choice' | 'reusedJobs'>> {
  const first = chooseReused({ ...repetition, missing: new Map() });
  if (first.reused.length === 0) return { choice: first, reusedJobs: new Map() };
  const mentioned = await listMentionedMedia(ctx.db, before.run_id, first.reused);
  const missing = await findMissing(ctx, before.project_id, mentioned);
  const choice = missing.size === 0 ? first : chooseReused({ ...repetition, missing });
  const taken = new Set(choice.reused);
  const references = mentioned.filter(({ step_id }) => taken.has(step_id)).map(({ reference }) => reference);
  return { choice, reusedJobs: findMediaJobs(references) };
}

interface RerunTarget {
  readonly version: string | undefined;
  /** Of a run that is a refused or missed start: the schedule as it is now, so that the cause may be mended. */
  readonly schedule: ScheduleRequest | undefined;
}

/** @throws AppError `not_found` */
function findDefinition(
  definitions: KnownDefinitions,
  { project_id, pipeline, digest }: RepeatedRun,
  { version, schedule }: RerunTarget,
): Promise<KnownDefinition> {
  if (version !== undefined) return definitions.find(project_id, pipeline, { version });
  if (schedule === undefined) return definitions.ofDigest(digest);
  return definitions.find(project_id, schedule.pipeline, choiceOf(schedule));
}

async function plan(ctx: RerunCtx, order: RerunOrder): Promise<Rerun> {
  const { db, definitions } = ctx;
  const { from = null, only_failed = false, version, job: otherJob } = order.request;
  const before = await readBefore(ctx, order);
  const schedule =
    before.failed_start_of === null ? undefined : await readSchedule(db, before.failed_start_of);
  const known = await findDefinition(definitions, before, { version, schedule: schedule?.body });
  if (from !== null) requireSteps(from, known);
  const givenJob = otherJob ?? schedule?.body.job;
  const job: RunJob =
    givenJob === undefined ? { job_id: before.job_id, body: before.job, isNew: false } : newJob(givenJob);
  const chosen = await choose(ctx, before, {
    compiled: compileDefinition(known.definition),
    before: before.definition,
    roots: { job: job.body, run: { job_id: job.job_id, version: known.definition.version } },
    rootsBefore: { job: before.job, run: { job_id: before.job_id, version: before.definition.version } },
    from,
    onlyFailed: only_failed,
    states: await readStepStates(db, before.run_id),
  });
  return { before, known, job, ...chosen };
}

async function start(ctx: RerunCtx, order: RerunOrder, keep: KeepAnswer): Promise<Run> {
  const { before, known, job, choice, reusedJobs } = await plan(ctx, order);
  const { run_id: from, state, priority, budget_ceiling_usd: former, labels } = before;
  const { budget_ceiling_usd = former === null ? null : Number(former) } = order.request;
  if (!terminalRunStates.has(state)) {
    throw new AppError('state_conflict', `run ${from} is ${state}; only a run that has ended can run again`);
  }
  const prepared = await prepareRun(ctx, order.project_id, {
    known,
    isStored: true,
    job,
    priority,
    labels,
    rerun_of: from,
    started_by: order.by,
    ...(choice.reused.length === 0 ? {} : { reusedJobs }),
    budget_ceiling_usd,
  });
  const run = newRunView(prepared.row, known.definition, choice.reused);
  await ctx.db.transaction(async (trx) => {
    await keep(trx, 202, run);
    if (!(await keepRepeated(trx, from))) throw noSuchRun(from);
    const { run_id: to } = await insertAdmittedRun(trx, prepared, ctx.config.OPEN_RUNS_PER_PROJECT);
    if (choice.reused.length > 0) await copySteps(trx, { from, to, step_ids: choice.reused });
  });
  return run;
}

/** @throws AppError `not_found`, `request_invalid` */
export async function previewRerun(ctx: RerunCtx, order: RerunOrder): Promise<RerunPreview> {
  const { reused, executed } = (await plan(ctx, order)).choice;
  return { reused: [...reused], executed: [...executed] };
}

/** @throws AppError `not_found`, `state_conflict` before it has ended, `open_runs_limit`, `request_invalid`, `job_invalid` */
export async function rerunRun(ctx: RerunCtx, order: RerunOrder): Promise<Submission> {
  const { answer: run, replayed } = await answerOnce<Run>(ctx.db, {
    project_id: order.project_id,
    request: `POST /v1/runs/${order.run_id}/rerun`,
    idempotency: order.idempotency,
    work: (keep) => start(ctx, order, keep),
  });
  if (!replayed) void deliverSoon(ctx, runStarts, { run_id: run.run_id });
  return { run, replayed };
}
