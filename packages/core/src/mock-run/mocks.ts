/** The mocks file of a local run: answers of capabilities, decisions of people, and the expected outcome. */
import { z } from 'zod';
import { CostModel } from '../contracts/capability.ts';
import { hostFields } from '../contracts/host.ts';
import { PipelineDefinition } from '../contracts/pipeline.ts';
import {
  CapabilityName,
  Duration,
  EventKey,
  EventName,
  Instant,
  Json,
  JsonObject,
  Priority,
  StepId,
  Tags,
  Usd,
  VersionText,
} from '../contracts/primitives.ts';
import { StepState } from '../contracts/run-step.ts';

/** The calls that it matches, then their result. Without output, error or fault the output is the input. */
export const MockReply = z
  .strictObject({
    /** A condition over `input`. */
    when: z.string().optional(),
    step: StepId.optional(),
    /** Position in `instances`, from 1. */
    instance: z.number().int().min(1).optional(),
    /** After this many calls, the next matching reply is used. */
    times: z.number().int().min(1).optional(),
    delay: Duration.optional(),
    /** It accepts the call with 202, and answers this long after. */
    later: Duration.optional(),
    /** Any JSON with expressions over `input`. */
    output: Json.optional(),
    error: z
      .strictObject({
        status: z.number().int().min(400).max(599),
        message: z.string(),
        /** Of 429 and 503: when the instance asks to be called again. */
        retry_after: Duration.optional(),
      })
      .optional(),
    /** Answers HTML. */
    garbage: z.literal(true).optional(),
    /** The connection breaks after the request was sent. */
    lost: z.literal(true).optional(),
    /** No connection. */
    refused: z.literal(true).optional(),
  })
  .refine(
    ({ output, error, garbage, lost, refused }) =>
      [output, error, garbage, lost, refused].filter((one) => one !== undefined).length <= 1,
    { error: 'a reply has at most one of output, error, garbage, lost and refused' },
  )
  .refine(({ later, lost, refused }) => later === undefined || (lost ?? refused) === undefined, {
    error: 'a reply that comes later is neither lost nor refused',
  });
export type MockReply = z.infer<typeof MockReply>;

const instanceFields = {
  version: VersionText.optional(),
  tags: Tags.optional(),
  cost_model: CostModel.optional(),
  max_concurrency: z.number().int().min(1).max(10_000).optional(),
  ...hostFields,
  /** Duration of its earlier calls. */
  duration: Duration.optional(),
  /** After the beginning of the run. Default 0s. */
  registered_after: Duration.optional(),
};

export const MockInstance = z.strictObject(instanceFields);
export type MockInstance = z.infer<typeof MockInstance>;

export const MockCapability = z.strictObject({
  ...instanceFields,
  /** JSON Schemas. */
  input: JsonObject.optional(),
  output: JsonObject.optional(),
  /** Fields that differ from the above. Default: one instance; an empty list = no registered instance. */
  instances: z.array(MockInstance).max(100).optional(),
  /** The first match answers. Default: the input. */
  replies: z.array(MockReply).optional(),
});
export type MockCapability = z.infer<typeof MockCapability>;

export const MockDecision = z.strictObject({
  /** After the review was opened. Default 0s. */
  after: Duration.optional(),
  action: z.enum(['approve', 'edit', 'retry', 'output', 'skip', 'reject', 'raise', 'cancel']),
  /** approve: index of the proposal. Default 0. */
  proposal: z.number().int().min(0).optional(),
  input: JsonObject.optional(),
  output: Json.optional(),
  budget_ceiling_usd: Usd.optional(),
  note: z.string().optional(),
});
export type MockDecision = z.infer<typeof MockDecision>;

export const MockControl = z.strictObject({
  /** After the beginning of the run. */
  at: Duration,
  action: z.enum(['cancel', 'pause', 'resume', 'raise']),
  /** raise: the new ceiling. */
  budget_ceiling_usd: Usd.optional(),
});
export type MockControl = z.infer<typeof MockControl>;

const MockEvent = z.strictObject({
  name: EventName,
  key: EventKey.optional(),
  /** After the beginning of the run. Default 0s. */
  after: Duration.optional(),
  /** Default null. */
  payload: Json.optional(),
});

const ExpectedStep = z.union([
  StepState,
  z.strictObject({
    state: StepState.optional(),
    /** Code of its error. */
    error: z.string().optional(),
    output: Json.optional(),
    attempts: z.number().int().min(0).optional(),
    /** States of the items, in order. */
    items: z.array(StepState).optional(),
  }),
]);

/** Absent fields are not checked. */
export const Expectation = z.strictObject({
  outcome: z.enum(['succeeded', 'failed', 'cancelled', 'waiting', 'refused']).optional(),
  /** Code of the run's error. */
  error: z.string().optional(),
  output: Json.optional(),
  steps: z.record(StepId, ExpectedStep).optional(),
  /** Calls by capability. */
  calls: z.record(CapabilityName, z.number().int().min(0)).optional(),
});
export type Expectation = z.infer<typeof Expectation>;

export const Mocks = z.strictObject({
  /** The time at the start of the run. Default: 2026-01-01T00:00:00Z. */
  clock: Instant.optional(),
  run: z.strictObject({ priority: Priority.optional(), budget_ceiling_usd: Usd.optional() }).optional(),
  /** The job, unless it is given otherwise. */
  job: JsonObject.optional(),
  capabilities: z.record(CapabilityName, MockCapability).optional(),
  /** Decisions by step, for its reviews in order. */
  reviews: z.record(StepId, z.array(MockDecision)).optional(),
  /** Decisions of budget reviews. */
  budget_reviews: z.array(MockDecision).optional(),
  control: z.array(MockControl).optional(),
  /** Outside events, which steps with `event` take. */
  events: z.array(MockEvent).max(1_000).optional(),
  /** Definitions of sub-pipelines, or files with them; those in the pipeline's own folder are found automatically. */
  pipelines: z.array(z.union([z.string(), PipelineDefinition])).optional(),
  expect: Expectation.optional(),
});
export type Mocks = z.infer<typeof Mocks>;

/** The mocks lack something that the run needs: a mistake of the test, not an outcome of the run. */
export class MockFault extends Error {
  override readonly name = 'MockFault';
}

/** A value in a message. */
export function showBriefly(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 300 ? `${text.slice(0, 299)}…` : text;
}
