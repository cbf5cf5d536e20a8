/** A forecast as the plan that is answered, with what is to be said about the run as a whole. */
import type { DecidedRoute, DispatchChoice } from '../../contracts/dispatch.ts';
import type { Finding, PipelineDefinition } from '../../contracts/pipeline.ts';
import type { Plan, PlannedStepView } from '../../contracts/plan.ts';
import { fromNanoUsd, toNanoUsd } from '../../core/money/nano-usd.ts';
import type { Headroom } from '../../core/routing/headroom.ts';
import { createDispatchOf, explainDispatch } from '../../core/run/step-dispatch.ts';
import { showCost } from './cost-range.ts';
import type { PlanContext, RunForecast, RunTask } from './forecast.ts';

const mostFindings = 1_000;

export interface PlannedRun {
  readonly context: Pick<PlanContext, 'missing' | 'inputBudget'>;
  readonly task: RunTask;
  readonly forecast: RunForecast;
  readonly headroom: Headroom;
  /** How steps would be carried out that leave it open. */
  readonly dispatch: readonly DecidedRoute[];
  /** Findings of the definition's checks. */
  readonly checks: readonly Finding[];
}

export function showPlan(run: PlannedRun): Plan {
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
