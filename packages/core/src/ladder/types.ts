/** The state, events and commands of the ladder: plain JSON, kept in a workflow and on the escalation's row. */
import type { EscalationAdvice, EscalationAttempt } from '../contracts/escalation.ts';
import type { BudgetRefusal } from '../contracts/money.ts';
import type { Failure, JsonObject } from '../contracts/primitives.ts';
import type { ResolvedEscalation } from '../definition/step-settings.ts';
import type { FailureClass } from './classify-failure.ts';

/** An element of `escalation_history`, with the fingerprint of its error, which has at most 8 KiB. */
export interface LadderAttempt extends Readonly<EscalationAttempt> {
  readonly fingerprint: string;
}

/** An element of `escalation_advice` with the fingerprint of the error it answered ('' = unknown). */
export interface LadderAdvice extends Readonly<EscalationAdvice> {
  readonly fingerprint: string;
}

export interface LadderRules {
  /** The lowest level for advisors and for executions after the first; 0 to `max_level`. */
  readonly lowest_level: number;
  /** 0 to 4: the level above is a person. */
  readonly max_level: number;
  readonly max_advices_per_level: number;
  /** Transient failures in a row after which a command is still retried. */
  readonly max_transients: number;
}

export interface LadderStart extends Partial<LadderRules> {
  /** The stored `escalation_level`: the level of the first execution. */
  readonly start_level: number;
  readonly history: readonly LadderAttempt[];
  readonly advice: readonly LadderAdvice[];
}

export interface LadderState {
  readonly rules: LadderRules;
  readonly history: readonly LadderAttempt[];
  readonly advice: readonly LadderAdvice[];
  /** The current command; the next event answers it. */
  readonly command: LadderCommand;
}

export type StopReason =
  | 'exhausted'
  /** No level has a model, so no advice was requested. */
  | 'no_advisor'
  | 'advisor_says_human'
  | 'gave_up'
  | 'ops'
  | 'budget'
  | 'time'
  | 'cancelled';

interface Retry {
  /** Transient failures of this command so far, for the delay before its retry. */
  readonly transients: number;
  /** Why the previous answer did not fit its schema, for the model; null for the first request. */
  readonly malformed: string | null;
}

export interface ExecuteCommand extends Retry {
  readonly type: 'execute';
  readonly level: number;
  readonly label: string;
}

export interface AdviseCommand extends Retry {
  readonly type: 'advise';
  readonly from_level: number;
  readonly label: string;
  readonly error: string;
  readonly fingerprint: string;
}

/** The content of a new skill: the advice that helped, and the error it answered. */
export interface Lesson {
  readonly advice: LadderAdvice;
  readonly attempt: LadderAttempt;
}

export type LadderCommand =
  | ExecuteCommand
  | AdviseCommand
  | { readonly type: 'succeed'; readonly level: number; readonly lesson: Lesson | null }
  | StopCommand;

/** A person takes over, except after `cancelled`. */
export interface StopCommand {
  readonly type: 'stop';
  readonly reason: StopReason;
  /** The error of the last call. */
  readonly error: string | null;
  /** The budget that had no room; absent for the ladder's own limit, or without a budget. */
  readonly refusal?: BudgetRefusal;
}

interface Failed {
  readonly attempted_at: number;
  readonly error: string;
  readonly fingerprint: string;
}

export type LadderEvent =
  | { readonly type: 'succeeded' }
  /** The execution, or the call for advice, failed. */
  | ({
      readonly type: 'failed';
      readonly class: FailureClass;
      readonly refusal?: BudgetRefusal | undefined;
    } & Failed)
  /** Level 0 had nothing to apply. */
  | ({ readonly type: 'no_template' } & Failed)
  /** The executor reports that it cannot do the job. */
  | ({ readonly type: 'gave_up' } & Failed)
  | {
      readonly type: 'advised';
      readonly instructions: string;
      readonly reasoning?: string;
      readonly suggested_executor_level?: number;
    }
  /** The level has no instance. */
  | { readonly type: 'unavailable' }
  | { readonly type: 'timed_out' }
  | { readonly type: 'cancel_requested' };

/** A failure that a corrected input may cure. */
export interface FailedStep {
  readonly run_id: string;
  readonly step_id: string;
  /** 0 = the step as a whole. */
  readonly item: number;
  readonly revision: number;
  readonly project_id: string;
  readonly pipeline: string;
  readonly capability: string;
  readonly tags: readonly string[];
  readonly input: JsonObject;
  readonly failure: Failure;
  readonly policy: ResolvedEscalation;
}
