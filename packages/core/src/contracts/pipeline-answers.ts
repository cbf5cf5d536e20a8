/** Answers about pipelines: findings of a validation, stored versions, aliases; and the bodies of their requests. */

import { z } from 'zod';
import { PipelineDefinition } from './pipeline.ts';
import {
  CapabilityName,
  Duration,
  Instant,
  listOf,
  PipelineName,
  PipelineReference,
  StepId,
  VersionText,
} from './primitives.ts';

/** A finding of validation. */
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

/** The kind of a step in a graph, a plan or a run: exactly one field. */
export const stepKindFields = {
  capability: CapabilityName.optional(),
  pipeline: PipelineReference.optional(),
  wait: Duration.optional(),
  /** The title of the question. */
  review: z.string().optional(),
  /** The name of the event that it waits for. */
  event: z.string().optional(),
  /** The names of the fields that it sets. */
  set: z.string().optional(),
};

/** Definitions that count as stored, for a validation or a plan. */
export const BesideDefinitions = z.array(PipelineDefinition).max(50);

/** Body of `POST /v1/validate`. */
export const ValidationRequest = z
  .strictObject({
    /** The definition's text, JSON or YAML. */
    text: z.string(),
    /** Default: derived from the first character. */
    type: z.enum(['application/json', 'application/yaml']).optional(),
    /** true: an unregistered capability is an error instead of a warning. */
    strict: z.boolean().default(false),
    /** Pipelines that it runs, which need not be stored yet. */
    pipelines: BesideDefinitions.default([]),
  })
  .meta({ id: 'ValidationRequest' });

export const Validation = z
  .strictObject({
    valid: z.boolean(),
    findings: z.array(Finding),
    graph: z
      .strictObject({
        steps: z.array(z.strictObject({ id: StepId, ...stepKindFields })),
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
    /** The text as it was stored, comments included. */
    source: z
      .strictObject({ text: z.string(), content_type: z.enum(['application/json', 'application/yaml']) })
      .optional(),
    created_at: Instant,
  })
  .meta({ id: 'PipelineVersion' });
export type PipelineVersion = z.infer<typeof PipelineVersion>;

export const PipelineVersionList = listOf(
  z.strictObject({ version: VersionText, digest: z.string(), created_at: Instant }),
).meta({ id: 'PipelineVersionList' });

/** Body of `PUT /v1/pipelines/{name}/aliases/{alias}`. */
export const AliasRequest = z.strictObject({ version: VersionText }).meta({ id: 'AliasRequest' });

/** Capstan maintains `latest`: the version that was stored last. */
export const Alias = z
  .strictObject({ alias: PipelineName, version: VersionText, updated_at: Instant })
  .meta({ id: 'Alias' });
export type Alias = z.infer<typeof Alias>;
export const AliasList = z.strictObject({ items: z.array(Alias) }).meta({ id: 'AliasList' });
