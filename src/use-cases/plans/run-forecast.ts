/**
 * Forecasts a run without calling an instance: the run's state machine decides which steps happen, the router which
 * instance would take each of them now, and dependencies, slots and calls in line how long it takes.
 *
 * The state machine is rehearsed three times. First, everything happens that may happen. Second, nothing fails and
 * every unknown condition holds. Third, none of those conditions holds. The first rehearsal gives the worst case, the
 * second the usual one, the third the certain one; each is part of the one before.
 */

import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import type { PlannedStepView } from '@capstan/core/contracts/plan';
import {
  type CompiledDefinition,
  type CompiledStep,
  compileDefinition,
} from '@capstan/core/definition/compile';
import { capabilityOf } from '@capstan/core/definition/step-settings';
import { formatDuration, parseDuration } from '@capstan/core/duration';
import type { StepScope } from '@capstan/core/expression/evaluation';
import { ExpressionError } from '@capstan/core/expression/language';
import { findCriticalPath } from '@capstan/core/graph/dag';
import { type ForeseenStep, foreseeTime } from '@capstan/core/graph/foreseen-time';
import { applyEvent, type StepVerdict, startRun } from '@capstan/core/run/machine';
import { findRaceRegions, type PlannedStep, planRun, type RunPlan } from '@capstan/core/run/plan';
import { refuseWork } from '../../parts/expression-work.ts';
import { newId } from '../../parts/ids.ts';
import {
  addCosts,
  type CostRange,
  nobody,
  noCost,
  type PlanContext,
  type RunForecast,
  type RunTask,
  type StepForecast,
} from './forecast.ts';
import {
  findingOf,
  foreseeAtOnce,
  foreseeCondition,
  foreseeSteps,
  type KnownFacts,
  type PlanWork,
} from './partial-evaluation.ts';
import { forecastStep } from './step-forecast.ts';

type IsSkipped = (index: number) => boolean;

/** The foreseen result of a step's `when`. */
export type Condition = 'holds' | 'fails' | 'unknown';

interface Rehearsal {
  /** By index. */
  readonly may: readonly boolean[];
  readonly usual: readonly boolean[];
  readonly sure: readonly boolean[];
}

/**
 * @param conditionOf called once per step with a condition, when its turn comes; by then it is certain of each step
 * that it depends on whether it is skipped
 */
export async function rehearseRun(
  plan: RunPlan,
  conditionOf: (index: number, isSkipped: IsSkipped) => Condition | Promise<Condition>,
): Promise<Rehearsal> {
  const { steps } = plan;
  const conditions = new Map<number, Condition>();
  /** A dependency of a handler must fail and let the run continue. */
  const mayBegin = (step: PlannedStep, isSkipped: IsSkipped): boolean =>
    !isHandler(step) || step.dependencies.some((at) => steps[at]?.continues === true && !isSkipped(at));

  const may = await rehearseOnce(steps.map(forgetItems).map(handleAnything), async (index, isSkipped) => {
    if (!mayBegin(steps[index] as PlannedStep, isSkipped)) return false;
    const condition = await conditionOf(index, isSkipped);
    conditions.set(index, condition);
    return condition !== 'fails';
  });
  const certain = steps.map(forgetItems);
  const usual = await rehearseOnce(certain, (index) => conditions.get(index) !== 'fails');
  const sure = await rehearseOnce(certain, (index) => conditions.get(index) === 'holds');
  return { may, usual, sure };
}

/** Items are counted elsewhere: all of them happen, or none. So are the steps of a race. */
function forgetItems({ each: _, race: _race, ...step }: PlannedStep): PlannedStep {
  return step;
}

/** Whether the step handles failures only. */
function isHandler({ run_if, dependencies }: PlannedStep): boolean {
  return run_if === 'any_failed' && dependencies.length > 0;
}

function handleAnything(step: PlannedStep): PlannedStep {
  return isHandler(step) ? { ...step, run_if: 'all_done', decides: true } : step;
}

/** Calls `happens` in the order of a run in which every step that happens succeeds. */
async function rehearseOnce(
  steps: readonly PlannedStep[],
  happens: (index: number, isSkipped: IsSkipped) => boolean | Promise<boolean>,
): Promise<readonly boolean[]> {
  const { state, commands } = startRun({ steps, max_in_flight: steps.length });
  const isSkipped = (index: number): boolean => state.steps[index] === 'skipped';
  for (const command of commands) {
    if (command.type === 'execute') {
      const { step, item } = command;
      commands.push(...applyEvent(state, { type: 'step_ended', step, item, state: 'succeeded' }));
    } else if (command.type === 'decide') {
      const { steps: asked } = command;
      const verdicts: StepVerdict[] = [];
      for (const step of asked) verdicts.push({ type: (await happens(step, isSkipped)) ? 'go' : 'skip' });
      commands.push(...applyEvent(state, { type: 'decided', steps: asked, verdicts }));
    }
  }
  return state.steps.map((step) => step === 'succeeded');
}

/** @throws AppError `expression_limit` */
export async function forecastRun(context: PlanContext, task: RunTask): Promise<RunForecast> {
  try {
    return await forecastAll(context, task);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    const { pipeline, version, steps } = task.definition;
    const index = /^\/steps\/(\d+)/.exec(error.pointer)?.[1];
    const id = steps[Number(index)]?.id;
    throw refuseWork(error, `${id === undefined ? '' : `step ${id} of `}${pipeline}@${version}`);
  }
}

async function forecastAll(context: PlanContext, task: RunTask): Promise<RunForecast> {
  const { definition } = task;
  const compiled = compileDefinition(definition);
  const plan = planRun(definition, { compiled });
  const stage = createStage(context.work, task, compiled);
  const rehearsal = await rehearseRun(plan, stage.conditionOf);
  const forecasts: StepForecast[] = [];
  for (const [index, step] of compiled.steps.entries()) {
    const { facts } = stage;
    const maxParallel = maxParallelOf(plan, index);
    forecasts.push(
      rehearsal.may[index] === true
        ? await forecastStep(context, task, { step, pointer: `/steps/${index}`, facts, maxParallel })
        : leaveOut(step.items !== null),
    );
  }
  const regions = findRaceRegions(compiled);
  const cheapest = rehearseRaces(plan, regions, {
    rehearsal,
    rank: (at) => Number(forecasts[at]?.cost.least ?? 0n),
  });
  const steps = forecasts.map((forecast, index) => ({
    ...forecast,
    id: compiled.steps[index]?.definition.id ?? '',
    happens: happensOf(cheapest, index),
    cost: weighCost(forecast.cost, { ...rehearsal, sure: cheapest.sure }, index),
  }));
  const fastest = rehearseRaces(plan, regions, { rehearsal, rank: (at) => forecasts[at]?.durationMs ?? 0 });
  const time = foreseeRun(plan, forecasts, fastest);
  const late = findLateness(definition, time);
  return {
    steps,
    cost: steps.reduce((sum, { cost }) => addCosts(sum, cost), noCost),
    durationMs: time.durationMs,
    workload: time.workload,
    path: time.path,
    findings: [...stage.findings, ...forecasts.flatMap(({ findings }) => findings), ...late],
  };
}

interface RankedRaces {
  readonly rehearsal: Rehearsal;
  /** By index; the least are the first. */
  readonly rank: (index: number) => number;
}

/** A rehearsal in which the branches of the least rank win each race; the others may happen, and nothing waits for them. */
function rehearseRaces(
  { steps }: RunPlan,
  regions: ReadonlyMap<number, readonly number[]>,
  { rehearsal, rank }: RankedRaces,
): Rehearsal {
  if (regions.size === 0) return rehearsal;
  const losers = new Set<number>();
  for (const [join, region] of regions) {
    const inRegion = new Set(region);
    const branchOf = (step: number): number[] => {
      const branch = new Set([step]);
      for (const one of branch)
        for (const before of steps[one]?.dependencies ?? []) if (inRegion.has(before)) branch.add(before);
      return [...branch];
    };
    const { of = [], count = 1 } = steps[join]?.race ?? {};
    const ranked = of
      .map((step) => branchOf(step))
      .map((branch) => ({ branch, sum: branch.reduce((sum, step) => sum + rank(step), 0) }))
      .sort((a, b) => a.sum - b.sum);
    const winners = new Set(ranked.slice(0, count).flatMap(({ branch }) => branch));
    for (const step of region) if (!winners.has(step)) losers.add(step);
  }
  const without = (list: readonly boolean[]) => list.map((one, index) => one && !losers.has(index));
  return { may: rehearsal.may, usual: without(rehearsal.usual), sure: without(rehearsal.sure) };
}

function maxParallelOf({ steps, max_in_flight }: RunPlan, index: number): number {
  return Math.min(steps[index]?.each?.max_parallel ?? max_in_flight, max_in_flight);
}

/** The time of the usual run, of its longest chain, and of its waits for slots. */
function foreseeRun(plan: RunPlan, forecasts: readonly StepForecast[], { usual }: Rehearsal) {
  const steps = plan.steps.map(({ id, dependencies }, index): ForeseenStep => {
    const groups = usual[index] === true ? (forecasts[index]?.groups ?? []) : [];
    return { id, dependencies, groups, maxParallel: maxParallelOf(plan, index) };
  });
  const path = findCriticalPath(
    plan.steps.map(({ id, dependencies }, index) => {
      const durationMs = usual[index] === true ? (forecasts[index]?.durationMs ?? 0) : null;
      return { id, dependencies, durationMs };
    }),
  );
  const time = foreseeTime(steps);
  return { ...time, steps, path, durationMs: Math.max(time.durationMs, path.durationMs) };
}

/** A run that cannot be expected to end in time, with the slots that it waits for longest. */
function findLateness(
  { timeout, steps: defined }: RunTask['definition'],
  { durationMs, waitedMs, steps }: ReturnType<typeof foreseeRun>,
): Finding[] {
  if (timeout === undefined || durationMs <= parseDuration(timeout)) return [];
  const late = `the run is expected to take about ${formatDuration(durationMs)}; its timeout is ${timeout}.`;
  const longest = waitedMs.reduce((most, ms, at) => (ms > (waitedMs[most] ?? 0) ? at : most), 0);
  const [group] = steps[longest]?.groups ?? [];
  const step = defined[longest];
  const isWaiting = (waitedMs[longest] ?? 0) > 0 && group !== undefined && step?.capability !== undefined;
  const slots = group?.places.reduce((sum, place) => sum + place.slots, 0);
  const advice = isWaiting
    ? ` Most of it is waiting for the ${slots === 1 ? 'only slot' : `${slots} slots`} of ${capabilityOf(step)} (step ${step.id}): register more instances, raise their max_concurrency, or raise the timeout`
    : ' Raise the timeout';
  return [{ severity: 'warning', code: 'run_timeout', pointer: '/timeout', message: late + advice }];
}

/** Values that are set from values that are set: so many are followed. */
const deepestSets = 50;

function runOf({ pipeline, version }: RunTask['definition'], job_id: string): KnownFacts['run'] {
  return { id: newId('run'), job_id, attempt: 1, pipeline, version };
}

/** Whether the step sets values once, whatever else happens. */
function isPlainSet({ kind, when, items, until }: CompiledStep): boolean {
  return kind === 'set' && when === null && items === null && until === null;
}

/** Keeps the values of the certain steps, before and during the rehearsals. */
function createStage(
  work: PlanWork,
  { definition, job, jobId: job_id }: RunTask,
  { steps }: CompiledDefinition,
) {
  const findings: Finding[] = [];
  let isSkipped: IsSkipped = () => false;
  const facts: KnownFacts = {
    work,
    job,
    run: runOf(definition, job_id),
    // A skip is certain before the run, and so are values that read nothing but the job; the end of a call is not.
    steps: foreseeSteps(
      steps.map(({ definition: { id } }) => id),
      (index) => (isSkipped(index) ? { status: 'skipped' } : foreseeSet(index)),
    ),
  };
  const known = new Map<number, StepScope>();
  let depth = 0;
  const foreseeSet = (index: number): StepScope | null => {
    const step = steps[index] as CompiledStep;
    if (!isPlainSet(step) || depth === deepestSets) return null;
    depth += 1;
    const foreseen = known.has(index) ? null : foreseeAtOnce(facts, step.input);
    depth -= 1;
    if (foreseen?.kind === 'known')
      known.set(index, { status: 'succeeded', output: foreseen.value, cost_usd: 0 });
    return known.get(index) ?? null;
  };
  const conditionOf = async (index: number, isLeftOut: IsSkipped): Promise<Condition> => {
    isSkipped = isLeftOut;
    const when = steps[index]?.when ?? null;
    if (when === null) return 'holds';
    const answer = await foreseeCondition(facts, when);
    if (answer.kind === 'known') return answer.value ? 'holds' : 'fails';
    if (answer.kind === 'wrong') findings.push(findingOf(answer));
    return 'unknown';
  };
  return { facts, conditionOf, findings };
}

function leaveOut(hasItems: boolean): StepForecast {
  return {
    ...nobody,
    groups: [],
    reason: 'it does not happen: its condition is false, or a step that it needs does not happen',
    ...(hasItems ? { items: 0 } : {}),
  };
}

function happensOf({ may, sure }: Rehearsal, index: number): PlannedStepView['happens'] {
  if (may[index] !== true) return 'no';
  return sure[index] === true ? 'yes' : 'unknown';
}

/** A step that may not happen can cost nothing. A step that happens only after a failure is not expected. */
function weighCost(cost: CostRange, { usual, sure }: Rehearsal, index: number): CostRange {
  return {
    ...cost,
    least: sure[index] === true ? cost.least : 0n,
    expected: usual[index] === true ? cost.expected : 0n,
  };
}
