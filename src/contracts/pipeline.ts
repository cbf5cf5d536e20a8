/**
 * A pipeline definition: the specification's closed core (pipeline, version, steps[id, capability,
 * depends_on, input]) plus optional keys. Unknown keys are errors.
 */
import { z } from 'zod';
import {
  CapabilityName,
  Duration,
  Instant,
  Json,
  JsonObject,
  listOf,
  PipelineName,
  Priority,
  StepId,
  Tags,
  Usd,
  VersionText,
} from './primitives.ts';

/** Transient failures only: a refused input is never retried. */
export const RetryPolicy = z
  .strictObject({
    /** Deliveries after the first one; 0 = delivered at most once. */
    max: z.number().int().min(0).max(100).optional(),
    initial: Duration.optional(),
    factor: z.number().min(1).max(10).optional(),
    max_delay: Duration.optional(),
  })
  .meta({ id: 'RetryPolicy' });
export type RetryPolicy = z.infer<typeof RetryPolicy>;

/** What happens when a step fails for good: corrected inputs, advice by models, then a person. */
export const EscalatePolicy = z
  .strictObject({
    enabled: z.boolean().optional(),
    /** Executions after the first, and advisors, are not below it. */
    start_level: z.number().int().min(0).max(4).optional(),
    /** Above it is a person; 0 = no models. */
    max_level: z.number().int().min(0).max(4).optional(),
    /** The most that all model calls of one escalation may cost. */
    max_usd: Usd.optional(),
    /** What becomes of the one minimal change that makes an input valid. */
    repair: z.enum(['off', 'propose', 'apply']).optional(),
    /** wait: the step waits for a review; fail: it fails at once. */
    on_exhausted: z.enum(['wait', 'fail']).optional(),
  })
  .meta({ id: 'EscalatePolicy' });
export type EscalatePolicy = z.infer<typeof EscalatePolicy>;

/** What a step may say, and `defaults` may say for every step. */
const stepSettings = {
  retry: RetryPolicy.optional(),
  /** Limit of one attempt. Default 300s, at most 24h. */
  timeout: Duration.optional(),
  priority: Priority.optional(),
  /** The most that one call may cost. */
  budget_ceiling_usd: Usd.optional(),
  escalate: EscalatePolicy.optional(),
};

export const StepDefinition = z
  .strictObject({
    id: StepId,
    capability: CapabilityName,
    description: z.string().max(10_000).optional(),
    depends_on: z.array(StepId).max(10_000).optional(),
    input: JsonObject.optional(),
    ...stepSettings,
    /** Limit of the step with all its attempts and waits. Default 1h. */
    total_timeout: Duration.optional(),
    /** Semver range that an instance's version must satisfy. */
    capability_version: z.string().min(1).max(128).optional(),
    /** Tags that an instance must all carry. */
    tags: Tags.optional(),
    /** A reviewer may give the output instead of an input. */
    allow_output: z.boolean().optional(),
    /** A reviewer may skip it. */
    optional: z.boolean().optional(),
  })
  .meta({ id: 'StepDefinition' });
export type StepDefinition = z.infer<typeof StepDefinition>;

export const PipelineDefinition = z
  .strictObject({
    pipeline: PipelineName,
    version: VersionText,
    description: z.string().max(10_000).optional(),
    defaults: z.strictObject(stepSettings).optional(),
    /** Limit of a whole run, at most 7d. Default: none. */
    timeout: Duration.optional(),
    labels: z.record(z.string().max(64), z.string().max(256)).optional(),
    steps: z.array(StepDefinition).min(1).max(10_000),
    /** The run's output: any JSON with expressions. Default: the outputs of the last steps, by id. */
    output: Json.optional(),
  })
  .meta({ id: 'PipelineDefinition', title: 'Capstan pipeline' });
export type PipelineDefinition = z.infer<typeof PipelineDefinition>;

/** One thing that validation found. */
export const Finding = z
  .strictObject({
    severity: z.enum(['error', 'warning', 'note']),
    code: z.string(),
    /** JSON Pointer into the definition. */
    pointer: z.string(),
    line: z.number().int().optional(),
    column: z.number().int().optional(),
    message: z.string(),
    suggestion: z.string().optional(),
  })
  .meta({ id: 'Finding' });
export type Finding = z.infer<typeof Finding>;

export const Validation = z
  .strictObject({
    valid: z.boolean(),
    findings: z.array(Finding),
    graph: z
      .strictObject({
        steps: z.array(z.strictObject({ id: StepId, capability: CapabilityName })),
        edges: z.array(z.strictObject({ from: StepId, to: StepId })),
      })
      .nullable(),
  })
  .meta({ id: 'Validation' });
export type Validation = z.infer<typeof Validation>;

export const PipelineSubmitted = z
  .strictObject({
    pipeline: PipelineName,
    version: VersionText,
    digest: z.string(),
    warnings: z.array(Finding),
  })
  .meta({ id: 'PipelineSubmitted' });
export type PipelineSubmitted = z.infer<typeof PipelineSubmitted>;

export const PipelineSummary = z
  .strictObject({
    pipeline: PipelineName,
    latest_version: VersionText,
    description: z.string().nullable(),
    steps: z.number().int(),
    created_at: Instant,
  })
  .meta({ id: 'PipelineSummary' });
export type PipelineSummary = z.infer<typeof PipelineSummary>;
export const PipelineList = listOf(PipelineSummary).meta({ id: 'PipelineList' });

export const PipelineVersion = z
  .strictObject({
    pipeline: PipelineName,
    version: VersionText,
    digest: z.string(),
    definition: PipelineDefinition,
    created_at: Instant,
  })
  .meta({ id: 'PipelineVersion' });
export type PipelineVersion = z.infer<typeof PipelineVersion>;

export const PipelineVersionList = listOf(
  z.strictObject({ version: VersionText, digest: z.string(), created_at: Instant }),
).meta({ id: 'PipelineVersionList' });
