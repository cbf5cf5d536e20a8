/** What a step is: a call of a capability, a run of another pipeline, a pause, or a question to a person. */
import type { StepDefinition } from '../../contracts/pipeline.ts';

export type StepKind = 'call' | 'run' | 'wait' | 'review';

type KindFields = Pick<StepDefinition, 'capability' | 'pipeline' | 'wait' | 'review'>;

/** The kind of a step in a checked definition, in which exactly one of the keys is there. */
export function stepKindOf({ pipeline, wait, review }: KindFields): StepKind {
  if (pipeline !== undefined) return 'run';
  if (wait !== undefined) return 'wait';
  return review === undefined ? 'call' : 'review';
}

/** A few words for people: `concat`, `reel@1.0`, `wait 30s`, `review`. */
export function describeStep(step: KindFields): string {
  switch (stepKindOf(step)) {
    case 'call':
      return step.capability ?? '';
    case 'run':
      return step.pipeline ?? '';
    case 'wait':
      return `wait ${step.wait}`;
    case 'review':
      return 'review';
  }
}

/** The capability of a step that is a call. */
export function capabilityOf({ capability }: Pick<StepDefinition, 'capability'>): string {
  return capability ?? '';
}

/** What it is on the wire: one of the four is there. */
export function kindFieldsOf({ capability, pipeline, wait, review }: KindFields) {
  return {
    ...(capability === undefined ? {} : { capability }),
    ...(pipeline === undefined ? {} : { pipeline }),
    ...(wait === undefined ? {} : { wait }),
    ...(review === undefined ? {} : { review: review.title }),
  };
}
