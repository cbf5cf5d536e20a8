/** The plan of a run: steps, time and cost, computed without any call. */
import { z } from 'zod';
import { Candidate, StepDispatch } from './decision.ts';
import { PipelineDefinition } from './pipeline.ts';
import { BesideDefinitions, Finding, stepKindFields } from './pipeline-answers.ts';
import { JsonObject, PipelineName, Priority, StepId, Usd, VersionText } from './primitives.ts';
import { checkAll, notBoth, sayAll } from './rules.ts';

/** A run to plan. Without a job, values that depend on it are unknown. */
const plannedRun = {
  job: JsonObject.optional(),
  job_id: z.string().max(128).optional(),
  priority: Priority.optional(),
  budget_ceiling_usd: Usd.optional(),
};

const oneJob = notBoth('job', 'job_id');
const planRules = [oneJob, notBoth('alias', 'version')];

/** Body of `POST /v1/pipelines/{name}/plan`. */
export const PlanRequest = z
  .strictObject({
    version: VersionText.optional(),
    /** Instead of a version. Default: latest. */
    alias: PipelineName.optional(),
    ...plannedRun,
  })
  .check(checkAll(planRules))
  .meta({ id: 'PlanRequest', ...sayAll(planRules) });
export type PlanRequest = z.infer<typeof PlanRequest>;

/** Body of `POST /v1/plan`. */
export const PlanDefinitionRequest = z
  .strictObject({
    definition: PipelineDefinition,
    /** Pipelines that it runs, which need not be stored yet. */
    pipelines: BesideDefinitions.optional(),
    ...plannedRun,
  })
  .check(oneJob.check)
  .meta({ id: 'PlanDefinitionRequest', ...oneJob.schema });
export type PlanDefinitionRequest = z.infer<typeof PlanDefinitionRequest>;

/**
 * USD, if no input has to be corrected. min: certain calls on the cheapest instances; instances that report their cost
 * count as 0. expected: the chosen instances, at the past duration or cost of such calls. worst: every attempt that the
 * retries allow is lost and costs its whole reservation; a child run costs at most its ceiling.
 */
export const PlannedCost = z
  .strictObject({ min: z.number(), expected: z.number(), worst: z.number() })
  .meta({ id: 'PlannedCost' });
export type PlannedCost = z.infer<typeof PlannedCost>;

export const PlannedStepView = z
  .strictObject({
    id: StepId,
    ...stepKindFields,
    /** If nothing fails. unknown: it depends on outputs of earlier steps, or it happens when one of them fails. */
    happens: z.enum(['yes', 'no', 'unknown']),
    /**
     * Number of items of a step with `for_each`; null when it depends on outputs of earlier steps: cost and time are
     * then those of one item.
     */
    items: z.number().int().nullable().optional(),
    /**
     * The most rounds of a step with `repeat`: min and expected of its cost, and its time, are those of one round; the
     * worst cost is that of all.
     */
    rounds: z.number().int().optional(),
    /** Number of its calls with a cached result, which cost nothing; absent for none. */
    cached: z.number().int().optional(),
    /** Endpoint for the first item; null when no instance could accept the call now, and for steps without calls. */
    chosen: z.string().nullable(),
    /** One sentence for a person. */
    reason: z.string(),
    candidates: z.array(Candidate),
    /** The planned dispatch, and its reason; absent for a step without calls. */
    dispatch: StepDispatch.optional(),
    cost_usd: PlannedCost,
    /**
     * How many of its calls the ceiling of the run and the rest of the day admit at once, beside nothing else; absent
     * for any number, and for a step without calls.
     */
    at_once: z.number().int().optional(),
    /** The past duration of such calls; with items, on the slots of all instances, if nothing else uses them. */
    duration_ms: z.number(),
  })
  .meta({ id: 'PlannedStep' });
export type PlannedStepView = z.infer<typeof PlannedStepView>;

export const Plan = z
  .strictObject({
    pipeline: z.string(),
    version: z.string(),
    steps: z.array(PlannedStepView),
    cost_usd: PlannedCost,
    /**
     * The worst cost where an unknown number of items is the greatest that is allowed; `cost_usd` counts it as one. Equal
     * to `cost_usd.worst` if each number is known.
     */
    limit_usd: z.number(),
    /**
     * The expected time of the run, if nothing fails: its calls share the slots of instances, behind the calls that those
     * have already. An unknown number of items counts as one.
     */
    duration_ms: z.number(),
    /** The longest chain of steps, if no step waits for the calls of another one and none is retried. */
    critical_path: z.strictObject({ steps: z.array(StepId), duration_ms: z.number() }),
    /** Required capabilities that are not registered. */
    missing: z.array(z.string()),
    /** The ceiling of the run, USD; null = none. */
    budget_ceiling_usd: Usd.nullable(),
    /** True if the worst case fits under the run's ceiling; an unknown number of items counts as the maximum. */
    within_ceiling: z.boolean(),
    findings: z.array(Finding),
  })
  .meta({ id: 'Plan' });
export type Plan = z.infer<typeof Plan>;
