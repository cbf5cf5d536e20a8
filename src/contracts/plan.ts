/** What a run would do and cost, worked out without calling anybody. */
import { z } from 'zod';
import { Candidate, StepDispatch } from './decision.ts';
import { BesideDefinitions, Finding, PipelineDefinition, stepKindFields } from './pipeline.ts';
import { JsonObject, PipelineName, Priority, StepId, Usd, VersionText } from './primitives.ts';
import { checkAll, notBoth, sayAll } from './rules.ts';

/** A run that is only planned. Without a job, what depends on it is not known. */
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
    /** Pipelines that it runs and that need not be stored yet. */
    pipelines: BesideDefinitions.optional(),
    ...plannedRun,
  })
  .check(oneJob.check)
  .meta({ id: 'PlanDefinitionRequest', ...oneJob.schema });
export type PlanDefinitionRequest = z.infer<typeof PlanDefinitionRequest>;

/**
 * USD, if no input has to be corrected. min: with the cheapest instances, of what surely happens; calls of instances that
 * report their cost count nothing. expected: with the chosen ones, for as long as such calls took, or what they cost, so far.
 * worst: with every delivery that the retries allow lost, and paid for with all it reserved; of a run below at most its ceiling.
 */
export const PlannedCost = z
  .strictObject({ min: z.number(), expected: z.number(), worst: z.number() })
  .meta({ id: 'PlannedCost' });
export type PlannedCost = z.infer<typeof PlannedCost>;

export const PlannedStepView = z
  .strictObject({
    id: StepId,
    ...stepKindFields,
    /** If nothing fails. unknown: it depends on what earlier steps answer, or it happens when one of them fails. */
    happens: z.enum(['yes', 'no', 'unknown']),
    /** How many items a step with `for_each` has; null when it depends on what earlier steps answer: cost and time are then of one. */
    items: z.number().int().nullable().optional(),
    /** How many of its calls have a result of an equal call, which costs nothing; absent for none. */
    cached: z.number().int().optional(),
    /** Endpoint, of the first item; null when no instance could take it now, and for steps that call none. */
    chosen: z.string().nullable(),
    /** One sentence for a person. */
    reason: z.string(),
    candidates: z.array(Candidate),
    /** How it would be carried out, and why; absent for a step that calls nobody. */
    dispatch: StepDispatch.optional(),
    cost_usd: PlannedCost,
    /** As long as such calls took so far, with all items. */
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
    /** The chain that the run waits for longest, when no call waits for an instance and none is repeated. */
    critical_path: z.strictObject({ steps: z.array(StepId), duration_ms: z.number() }),
    /** Capabilities that it needs and nobody has registered. */
    missing: z.array(z.string()),
    /** The ceiling that the run would have, USD; null = none. */
    budget_ceiling_usd: Usd.nullable(),
    /** Whether the worst case fits under the run's ceiling, with as many items as a step may have where their number is not known. */
    within_ceiling: z.boolean(),
    findings: z.array(Finding),
  })
  .meta({ id: 'Plan' });
export type Plan = z.infer<typeof Plan>;
