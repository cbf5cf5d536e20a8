/**
 * A run, worked out without calling anybody: the machine of a run says which steps happen, the router who would take
 * each of them now, and the dependencies how long it takes. Calls do not wait for one another: that several want the same
 * instance at once is not part of it.
 */
import type { Finding } from '../../contracts/pipeline.ts';
import type { PlannedStepView } from '../../contracts/plan.ts';
import { findCriticalPath } from '../../core/dag/critical-path.ts';
import {
  type CompiledDefinition,
  compileDefinition,
} from '../../core/definition/compile/compile-definition.ts';
import type { StepScope } from '../../core/expression/evaluation.ts';
import { planRun } from '../../core/run/plan-run.ts';
import { newId } from '../ids.ts';
import { addCosts, type CostRange, noCost } from './cost-range.ts';
import type { PlanContext, RunForecast, RunTask, StepForecast } from './forecast.ts';
import { forecastStep } from './forecast-step.ts';
import { createPartialEvaluation, type PartialEvaluation } from './partial-evaluation.ts';
import { type Condition, type Rehearsal, rehearseRun } from './rehearse.ts';

export async function forecastRun(context: PlanContext, task: RunTask): Promise<RunForecast> {
  const { definition } = task;
  const compiled = compileDefinition(definition);
  const plan = planRun(definition, { compiled });
  const stage = createStage(task, compiled);
  const rehearsal = await rehearseRun(plan, stage.conditionOf);
  const forecasts: StepForecast[] = [];
  for (const [index, step] of compiled.steps.entries()) {
    const limit = plan.steps[index]?.each?.max_parallel ?? plan.max_in_flight;
    const maxParallel = Math.min(limit, plan.max_in_flight);
    const { foresight } = stage;
    forecasts.push(
      rehearsal.may[index] === true
        ? await forecastStep(context, task, { step, pointer: `/steps/${index}`, foresight, maxParallel })
        : leaveOut(step.items !== null),
    );
  }
  const steps = forecasts.map((forecast, index) => ({
    ...forecast,
    id: compiled.steps[index]?.definition.id ?? '',
    happens: happensOf(rehearsal, index),
    cost: weighCost(forecast.cost, rehearsal, index),
  }));
  return {
    steps,
    cost: steps.reduce((sum, { cost }) => addCosts(sum, cost), noCost),
    path: findCriticalPath(
      plan.steps.map(({ id, dependencies }, index) => {
        const durationMs = rehearsal.usual[index] === true ? (forecasts[index]?.durationMs ?? 0) : null;
        return { id, dependencies, durationMs };
      }),
    ),
    findings: [...stage.findings, ...forecasts.flatMap(({ findings }) => findings)],
  };
}

/** What is certain of the steps, before and while the run is rehearsed. */
function createStage(task: RunTask, { steps }: CompiledDefinition) {
  const { definition, job, jobId } = task;
  const { pipeline, version } = definition;
  const findings: Finding[] = [];
  let isSkipped: (index: number) => boolean = () => false;

  /** It is certain that a step is left out; how one ends that happens, only the run will know. */
  const endOf = (index: number): StepScope | null => (isSkipped(index) ? { status: 'skipped' } : null);

  const foresight: PartialEvaluation = createPartialEvaluation({
    job,
    endOf,
    stepIds: steps.map(({ definition: { id } }) => id),
    run: { id: newId('run'), job_id: jobId, attempt: 1, pipeline, version },
  });

  const conditionOf = (index: number, isLeftOut: (index: number) => boolean): Condition => {
    isSkipped = isLeftOut;
    const when = steps[index]?.when ?? null;
    if (when === null) return 'holds';
    const answer = foresight.condition(when);
    if (answer.kind === 'known') return answer.value ? 'holds' : 'fails';
    if (answer.kind === 'wrong') {
      const { pointer, message } = answer;
      findings.push({ severity: 'error', code: 'expression_unresolved', pointer, message });
    }
    return 'unknown';
  };

  return { foresight, conditionOf, findings };
}

function leaveOut(hasItems: boolean): StepForecast {
  return {
    chosen: null,
    candidates: [],
    cost: noCost,
    durationMs: 0,
    findings: [],
    reason: 'it does not happen: its condition is false, or a step that it needs does not happen',
    ...(hasItems ? { items: 0 } : {}),
  };
}

function happensOf({ may, sure }: Rehearsal, index: number): PlannedStepView['happens'] {
  if (may[index] !== true) return 'no';
  return sure[index] === true ? 'yes' : 'unknown';
}

/** What need not happen costs nothing at the least; what happens only after a failure is not expected. */
function weighCost(cost: CostRange, { usual, sure }: Rehearsal, index: number): CostRange {
  return {
    ...cost,
    least: sure[index] === true ? cost.least : 0n,
    expected: usual[index] === true ? cost.expected : 0n,
  };
}
