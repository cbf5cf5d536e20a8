/** The keys of the definition contract, read from it. */
import {
  CachePolicy,
  Concurrency,
  Enough,
  EscalatePolicy,
  EventStep,
  ForEach,
  PipelineDefinition,
  Repeat,
  RetryPolicy,
  ReviewStep,
  StepDefinition,
} from '@capstan/core/contracts/pipeline';

const contracts = {
  pipeline: PipelineDefinition,
  concurrency: Concurrency,
  step: StepDefinition,
  for_each: ForEach,
  repeat: Repeat,
  enough: Enough,
  retry: RetryPolicy,
  escalate: EscalatePolicy,
  cache: CachePolicy,
  review: ReviewStep,
  event: EventStep,
};

/** As `step.when`, in the order of the contract. */
export function listKeys(): string[] {
  return Object.entries(contracts).flatMap(([name, { shape }]) =>
    Object.keys(shape).map((key) => `${name}.${key}`),
  );
}
