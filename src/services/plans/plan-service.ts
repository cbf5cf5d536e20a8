/**
 * Plans: what a run would do and cost if it began now. Nothing is written and nobody is called. The checks of the
 * definition are among the findings, and so is whatever would keep the run from succeeding.
 */

import type { DecidedRoute, DispatchChoice } from '../../contracts/decision.ts';
import type { Finding, PipelineDefinition } from '../../contracts/pipeline.ts';
import type { Plan, PlanDefinitionRequest, PlannedStepView, PlanRequest } from '../../contracts/plan.ts';
import type { JsonObject } from '../../contracts/primitives.ts';
import { checkRunnable } from '../../core/definition/checks/check-availability.ts';
import { fromNanoUsd, toNanoUsd } from '../../core/money/nano-usd.ts';
import { type Headroom, toHeadroom } from '../../core/routing/price-range.ts';
import { createDispatchOf, explainDispatch } from '../../core/run/dispatch.ts';
import { priorityOfRun } from '../../core/run/step-rules.ts';
import type { Db } from '../../db/connect.ts';
import { listCapabilityNames } from '../../db/instance/capability-name.ts';
import { readHeadroom } from '../../db/money/budget.ts';
import { findJob } from '../../db/run/job.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Caller } from '../access/caller.ts';
import { createFindKept } from '../cache/cache-service.ts';
import { newId } from '../ids.ts';
import { bindJobMedia } from '../jobs.ts';
import { checkForPlan, requireSoundBeside } from '../pipelines/definition-checks.ts';
import type { KnownDefinition } from '../runs/definitions.ts';
import { decideDispatch, requireOwnMedia } from '../runs/preparation.ts';
import { type PlanContext, type PlanCtx, type RunForecast, type RunTask, showCost } from './forecast.ts';
import { forecastRun } from './run-forecast.ts';

const mostFindings = 1_000;

interface PlannedRun {
  readonly context: Pick<PlanContext, 'missing' | 'inputBudget'>;
  readonly task: RunTask;
  readonly forecast: RunForecast;
  readonly headroom: Headroom;
  /** How steps would be carried out that leave it open. */
  readonly dispatch: readonly DecidedRoute[];
  /** Findings of the definition's checks. */
  readonly checks: readonly Finding[];
}

/** A forecast as the plan that is answered, with what is to be said about the run as a whole. */
function showPlan(run: PlannedRun): Plan {
  const { context, task, forecast, checks } = run;
  const { pipeline, version, steps } = task.definition;
  const dispatchOf = createDispatchOf(task.definition, run.dispatch);
  const refused = new Set(checks.filter(({ severity }) => severity === 'error').map(placeOf));
  const foreseen = forecast.findings.filter((finding) => !refused.has(placeOf(finding))); // said once
  const findings = [...checks, ...foreseen, ...judge(run)];
  return {
    pipeline,
    version,
    steps: steps.map((step, index) => showStep(step, forecast.steps[index], dispatchOf(step))),
    cost_usd: showCost(forecast.cost),
    critical_path: { steps: [...forecast.path.steps], duration_ms: forecast.path.durationMs },
    missing: [...context.missing].sort(),
    budget_ceiling_usd: task.ceilingUsd,
    within_ceiling: isWithin(forecast, task.ceilingUsd),
    findings: findings.slice(0, mostFindings),
  };
}

/** An input is one place. */
function placeOf({ pointer }: Finding): string {
  return /^\/steps\/\d+\/input/.exec(pointer)?.[0] ?? pointer;
}

function isWithin({ cost }: RunForecast, limitUsd: number | null): boolean {
  return limitUsd === null || cost.limit <= toNanoUsd(limitUsd);
}

function judge({ context, task: { ceilingUsd }, forecast, headroom }: PlannedRun): Finding[] {
  const findings: Finding[] = [];
  const say = (severity: Finding['severity'], code: string, message: string): void => {
    findings.push({ severity, code, pointer: '', message });
  };
  const worst = `the worst case is ${fromNanoUsd(forecast.cost.limit)} USD`;
  if (!isWithin(forecast, ceilingUsd)) {
    say('warning', 'ceiling_exceeded', `${worst}; the ceiling of the run is ${ceilingUsd} USD`);
  }
  const { headroomUsd, hidesHeadroom = false } = headroom;
  if (!isWithin(forecast, headroomUsd)) {
    const left = hidesHeadroom ? 'the day of all projects leaves less' : `today leaves ${headroomUsd} USD`;
    say('warning', 'budget_low', `${worst}; the budget of ${left}`);
  }
  if (context.inputBudget.isShort) {
    const message = 'not every input of so many items was looked at; the others are taken to be like them';
    say('note', 'items_not_looked_at', message);
  }
  return findings;
}

function showStep(
  { capability, pipeline, wait, review }: PipelineDefinition['steps'][number],
  forecast: RunForecast['steps'][number] | undefined,
  dispatch: DispatchChoice | null,
): PlannedStepView {
  if (forecast === undefined) throw new RangeError('a step without a forecast');
  const { id, happens, items, cached, chosen, reason, candidates, cost, durationMs } = forecast;
  return {
    id,
    capability,
    pipeline,
    wait,
    review: review?.title,
    happens,
    items,
    ...(cached === undefined ? {} : { cached }),
    chosen,
    reason,
    candidates: [...candidates],
    ...(dispatch === null ? {} : { dispatch: explainDispatch(dispatch) }),
    cost_usd: showCost(cost),
    duration_ms: durationMs,
  };
}

type Wish = Omit<PlanDefinitionRequest, 'definition' | 'pipelines'>;
type Beside = PlanContext['beside'];

/** @throws AppError `not_found`, `job_invalid`, `media_unknown` */
export async function planPipeline(
  ctx: PlanCtx,
  { project_id }: Pick<Caller, 'project_id'>,
  { pipeline, version, alias, ...wish }: PlanRequest & { readonly pipeline: string },
): Promise<Plan> {
  const choice = version !== undefined ? { version } : alias !== undefined ? { alias } : null;
  const known = await ctx.definitions.find(project_id, pipeline, choice);
  return makePlan(ctx, project_id, { known, wish, beside: [] });
}

/** @throws AppError `definition_invalid`, `not_found`, `job_invalid`, `media_unknown` */
export async function planDefinition(
  ctx: PlanCtx,
  { project_id }: Pick<Caller, 'project_id'>,
  { definition, pipelines: beside = [], ...wish }: PlanDefinitionRequest,
): Promise<Plan> {
  await requireSoundBeside(ctx, beside);
  return makePlan(ctx, project_id, { known: await ctx.definitions.ofBody(definition), wish, beside });
}

async function makePlan(
  ctx: PlanCtx,
  projectId: string,
  { known, wish, beside }: { readonly known: KnownDefinition; readonly wish: Wish; readonly beside: Beside },
): Promise<Plan> {
  const task = await readTask(ctx, projectId, known, wish);
  const headroom = toHeadroom(await readHeadroom(ctx.db, projectId));
  const context: PlanContext = { ...(await openPlan(ctx, projectId, headroom)), beside };
  const forecast = await forecastRun(context, task);
  const checks = await readChecks(context, known.definition);
  const dispatch = decideDispatch(ctx, known.openRoutes);
  return showPlan({ context, task, forecast, headroom, dispatch, checks });
}

/** So that a plan takes no longer than a request may. */
const mostInputs = 10_000;

async function openPlan(
  ctx: PlanCtx,
  projectId: string,
  headroom: Headroom,
): Promise<Omit<PlanContext, 'beside'>> {
  return {
    ctx,
    projectId,
    headroom,
    forecastRun,
    findKept: createFindKept(ctx),
    registered: await listCapabilityNames(ctx.db),
    missing: new Set(),
    inputBudget: { left: mostInputs, isShort: false },
    units: 0,
    calls: new Map(),
    runs: new Map(),
    pipelines: new Map(),
  };
}

/** A run does not start while one of its capabilities is not there and no step waits for it. */
async function readChecks(
  { ctx, projectId, registered, beside }: PlanContext,
  definition: PipelineDefinition,
): Promise<Finding[]> {
  const stops = checkRunnable(definition, registered);
  const pointers = new Set(stops.map(({ pointer }) => pointer));
  const checks = await checkForPlan(ctx, projectId, { definition, beside });
  return [...stops, ...checks.filter(({ pointer }) => !pointers.has(pointer))];
}

async function readTask(
  { db, ownMedia }: PlanCtx,
  projectId: string,
  known: KnownDefinition,
  wish: Wish,
): Promise<RunTask> {
  const { definition, checkJob } = known;
  const jobId = wish.job_id ?? newId('job');
  const job = await readJob(db, projectId, wish, jobId);
  if (job !== null) checkJob(job);
  await requireOwnMedia({ ownMedia }, projectId, { known, job: { job_id: jobId, body: job } });
  return {
    definition,
    job,
    jobId,
    depth: 0,
    priority: priorityOfRun(definition, wish.priority),
    ceilingUsd: wish.budget_ceiling_usd ?? definition.budget_ceiling_usd ?? null,
  };
}

async function readJob(
  db: Db,
  project_id: string,
  { job, job_id }: Wish,
  jobId: string,
): Promise<JsonObject | null> {
  if (job !== undefined) return bindJobMedia(job, jobId);
  if (job_id === undefined) return null;
  const stored = await findJob(db, { project_id, job_id });
  if (stored === null) throw new AppError('not_found', `there is no job ${job_id}`);
  return stored.body;
}
