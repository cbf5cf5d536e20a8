/**
 * Plans a run: what it would do and cost if it began now. A plan writes nothing and calls no instance. The checks of
 * the definition are among its findings, and so is every fact that would keep the run from succeeding.
 */

import { setImmediate } from 'node:timers/promises';
import type { DecidedRoute, DispatchChoice } from '@capstan/core/contracts/decision';
import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import type { Plan, PlanDefinitionRequest, PlannedStepView, PlanRequest } from '@capstan/core/contracts/plan';
import { checkRunnable } from '@capstan/core/definition/checks/check-availability';
import { kindFieldsOf } from '@capstan/core/definition/step-settings';
import { Meter, workLimits } from '@capstan/core/expression/meter';
import { fromNanoUsd, toNanoUsd } from '@capstan/core/money/nano-usd';
import { createTurns } from '@capstan/core/pacing';
import { type Headroom, toHeadroom } from '@capstan/core/routing/price-range';
import { createDispatchOf, explainDispatch } from '@capstan/core/run/dispatch';
import { ceilingOfRun, priorityOfRun } from '@capstan/core/run/step-rules';
import type { Db } from '../../db/connect.ts';
import { listCapabilityNames } from '../../db/instance/capability-name.ts';
import { readHeadroom } from '../../db/money/budget.ts';
import { checkForPlan, requireSoundBeside } from '../../parts/definitions/definition-checks.ts';
import { checkJob, choiceOf, type KnownDefinition } from '../../parts/definitions/known-definitions.ts';
import { newId } from '../../parts/ids.ts';
import { bindJobMedia } from '../../parts/media/own-media.ts';
import type { Caller } from '../access/caller.ts';
import { createFindKept } from '../calls/cache.ts';
import { decideDispatch, findRunJob, requireOwnMedia } from '../runs/preparation.ts';
import { type PlanContext, type PlanCtx, type RunForecast, type RunTask, showCost } from './forecast.ts';
import { PlanWork } from './partial-evaluation.ts';
import { forecastRun } from './run-forecast.ts';

const mostFindings = 1_000;

/** Definitions and jobs of plans at once are read and checked one after the other. */
const takeTurn = createTurns(setImmediate);

interface PlannedRun {
  readonly context: Pick<PlanContext, 'missing' | 'inputBudget'>;
  readonly task: RunTask;
  readonly forecast: RunForecast;
  readonly headroom: Headroom;
  /** How the steps that leave it open would be carried out. */
  readonly dispatch: readonly DecidedRoute[];
  /** Findings of the definition's checks. */
  readonly checks: readonly Finding[];
}

/** Turns a forecast into the plan that is returned, with the notes about the run as a whole. */
function showPlan(run: PlannedRun): Plan {
  const { context, task, forecast, checks } = run;
  const { pipeline, version, steps } = task.definition;
  const dispatchOf = createDispatchOf(task.definition, run.dispatch);
  const refused = new Set(checks.filter(({ severity }) => severity === 'error').map(placeOf));
  const foreseen = forecast.findings.filter((finding) => !refused.has(placeOf(finding))); // listed once
  const findings = [...checks, ...foreseen, ...judge(run)];
  return {
    pipeline,
    version,
    steps: steps.map((step, index) => showStep(step, forecast.steps[index], dispatchOf(step))),
    cost_usd: showCost(forecast.cost),
    limit_usd: fromNanoUsd(forecast.cost.limit),
    duration_ms: Math.round(forecast.durationMs),
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
  step: StepDefinition,
  forecast: RunForecast['steps'][number] | undefined,
  dispatch: DispatchChoice | null,
): PlannedStepView {
  if (forecast === undefined) throw new RangeError('a step without a forecast');
  const { id, happens, items, rounds, cached, chosen, reason, candidates, cost, durationMs, atOnce } =
    forecast;
  return {
    id,
    ...kindFieldsOf(step),
    happens,
    items,
    rounds,
    ...(cached === undefined ? {} : { cached }),
    chosen,
    reason,
    candidates: [...candidates],
    ...(dispatch === null ? {} : { dispatch: explainDispatch(dispatch) }),
    cost_usd: showCost(cost),
    ...(atOnce === null ? {} : { at_once: atOnce }),
    duration_ms: durationMs,
  };
}

type Wish = Omit<PlanDefinitionRequest, 'definition' | 'pipelines'>;
type Beside = PlanContext['beside'];

/** @throws AppError `not_found`, `job_invalid`, `media_unknown`, `expression_limit` */
export async function planPipeline(
  ctx: PlanCtx,
  { project_id }: Pick<Caller, 'project_id'>,
  { pipeline, version, alias, ...wish }: PlanRequest & { readonly pipeline: string },
): Promise<Plan> {
  const known = await ctx.definitions.find(project_id, pipeline, choiceOf({ version, alias }));
  return makePlan(ctx, project_id, { known, wish, beside: [] });
}

/** @throws AppError `definition_invalid`, `not_found`, `job_invalid`, `media_unknown`, `expression_limit` */
export async function planDefinition(
  ctx: PlanCtx,
  { project_id }: Pick<Caller, 'project_id'>,
  { definition, pipelines: beside = [], ...wish }: PlanDefinitionRequest,
): Promise<Plan> {
  await takeTurn();
  await requireSoundBeside(ctx, beside);
  return makePlan(ctx, project_id, { known: await ctx.definitions.ofBody(definition), wish, beside });
}

interface PlanOrder {
  readonly known: KnownDefinition;
  readonly wish: Wish;
  readonly beside: Beside;
}

async function makePlan(ctx: PlanCtx, projectId: string, order: PlanOrder): Promise<Plan> {
  const { known, beside } = order;
  await takeTurn();
  const task = await readTask(ctx, projectId, order);
  const { on_budget: onBudget, ...left } = await readHeadroom(ctx.db, projectId);
  const headroom = toHeadroom(left);
  const context: PlanContext = { ...(await openPlan(ctx, projectId, headroom)), onBudget, beside };
  const forecast = await forecastRun(context, task);
  const checks = await readChecks(context, task);
  const dispatch = decideDispatch(ctx.fleet.seenBy(projectId), known.openRoutes);
  return showPlan({ context, task, forecast, headroom, dispatch, checks });
}

/** Keeps a plan within the time of a request. */
const mostInputs = 10_000;

async function openPlan(
  ctx: PlanCtx,
  projectId: string,
  headroom: Headroom,
): Promise<Omit<PlanContext, 'beside' | 'onBudget'>> {
  return {
    ctx,
    projectId,
    headroom,
    forecastRun,
    findKept: createFindKept(ctx),
    registered: await listCapabilityNames(ctx.db, projectId),
    missing: new Set(),
    inputBudget: { left: mostInputs, isShort: false },
    work: new PlanWork(),
    prices: new Meter(workLimits.planPrices),
    units: 0,
    calls: new Map(),
    runs: new Map(),
    pipelines: new Map(),
  };
}

/** A run does not start while one of its capabilities is missing and no step waits for it. */
async function readChecks(
  { ctx, projectId, registered, beside }: PlanContext,
  { definition, job }: Pick<RunTask, 'definition' | 'job'>,
): Promise<Finding[]> {
  const stops = checkRunnable(definition, registered);
  const pointers = new Set(stops.map(({ pointer }) => pointer));
  const checks = await checkForPlan(ctx, projectId, { definition, beside, job: job ?? undefined });
  return [...stops, ...checks.filter(({ pointer }) => !pointers.has(pointer))];
}

async function readTask(ctx: PlanCtx, projectId: string, { known, wish }: PlanOrder): Promise<RunTask> {
  const { definition } = known;
  const { jobId, job } = await readJob(ctx.db, projectId, wish);
  if (job !== null) await checkJob(ctx, known, job);
  await requireOwnMedia(ctx, projectId, { known, job: { job_id: jobId, body: job } });
  return {
    definition,
    job,
    jobId,
    depth: 0,
    priority: priorityOfRun(definition, wish.priority),
    ceilingUsd: ceilingOfRun(definition, wish.budget_ceiling_usd),
  };
}

async function readJob(
  db: Db,
  project_id: string,
  { job, job_id }: Wish,
): Promise<Pick<RunTask, 'jobId' | 'job'>> {
  const jobId = job_id ?? newId('job');
  if (job !== undefined) return { jobId, job: bindJobMedia(job, jobId) };
  return { jobId, job: job_id === undefined ? null : (await findRunJob(db, project_id, job_id)).body };
}
