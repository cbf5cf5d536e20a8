/**
 * What `escalate` is started with, told and answers. The row of the escalation is the truth; the workflow only says
 * when its next transition happens, so none of this holds a value of a run.
 */
import type { Failure } from '../../contracts/primitives.ts';

export type LadderStage = { readonly type: 'execute' | 'advise'; readonly level: number } | LadderEnd;

export type LadderEnd =
  | { readonly type: 'end'; readonly outcome: 'succeeded'; readonly skill_id?: string }
  /** A person skipped the step. */
  | { readonly type: 'end'; readonly outcome: 'skipped' }
  | { readonly type: 'end'; readonly outcome: 'failed' | 'cancelled'; readonly error: Failure }
  /** A person is asked. */
  | {
      readonly type: 'end';
      readonly outcome: 'review';
      readonly review_id: string;
      readonly due_at: string;
      readonly error: Failure;
    };

/** Where a ladder stands. */
export interface LadderPosition {
  readonly escalation_id: string;
  readonly transition: number;
  readonly command: LadderStage;
}

/** Where to go on: a place on the ladder, or a review that is over. */
export type LadderResumption =
  | Pick<LadderPosition, 'transition' | 'command'>
  | { readonly review_id: string };

export interface EscalateInput {
  readonly engine_version: number;
  readonly escalation_id: string;
  /** By itself it waits for its reviews; of a step, the run's workflow does. */
  readonly waits_for_reviews: boolean;
  readonly from: LadderResumption;
  /** Silence after which a transition is given to another worker. */
  readonly heartbeat_timeout_ms: number;
  /** Where a person sees it, or its run. */
  readonly url: string;
}

/** Payload of the signal `reviewed`, which may come more than once, and before anybody waits. */
export interface ReviewedSignal {
  readonly review_id: string;
  /** The review's version when it ended. */
  readonly version: number;
}
