/**
 * What workflows receive from outside. Anybody who may use Temporal can start a workflow, signal it and complete its
 * activities, with any JSON or with nothing. Each workflow and each handler therefore reads its messages by a function
 * of this file, and trusts it afterwards. A signal that is none of Capstan's is null and changes nothing. An input that
 * is none has a fault, and ends its workflow.
 */
import type { Failure } from '../contracts/primitives.ts';
import type { ParentUnit } from '../contracts/run-control.ts';
import type { PlannedStep, RunPlan } from '../run/plan.ts';
import { snapshotShape } from '../run/snapshot.ts';
import {
  type ControlSignal,
  type EscalateInput,
  engineVersion,
  type LadderEnd,
  type LadderPosition,
  type LadderStage,
  type RestedSignal,
  type ReviewedSignal,
  type RunPipelineInput,
  type ScheduledRunInput,
  type ScheduledSubmission,
  type WokenSignal,
  type WorkflowSnapshot,
} from '../workflow-payloads.ts';
import {
  allow,
  anything,
  choiceOf,
  count,
  fields,
  flag,
  hasShape,
  indexBelow,
  listOf,
  nullable,
  number,
  optional,
  recordOf,
  type Shape,
  text,
} from './shape.ts';

/**
 * Each request to a run raises its version by one, and a signal may leave out those before it. No row is this far ahead
 * of its workflow, so a version beyond is not the row's. It would hide the signals that are.
 */
const farthest = 10_000;

const controlShape = fields<ControlSignal>({
  version: count,
  paused: flag,
  budget_version: count,
  paused_ms: optional(count),
});

/** @param known the version that the run has @returns null also where it changes nothing */
export function readControl(value: unknown, known: number): ControlSignal | null {
  if (!hasShape(controlShape, value)) return null;
  const { version, paused, budget_version, paused_ms } = value as ControlSignal;
  const isNext = version > known && version - known <= farthest && budget_version <= version;
  if (!isNext) return null;
  return { version, paused, budget_version, ...(paused_ms === undefined ? {} : { paused_ms }) };
}

const reviewId = /^rev_[\w-]{1,60}$/;
const reviewedShape = fields<ReviewedSignal>({
  review_id: allow('the id of a review', (value) => typeof value === 'string' && reviewId.test(value)),
  version: count,
});

export function readReviewed(value: unknown): ReviewedSignal | null {
  return hasShape(reviewedShape, value) ? (value as ReviewedSignal) : null;
}

const wokenShape = fields<WokenSignal>({ step_id: text, item: count });

export function readWoken(value: unknown): WokenSignal | null {
  return hasShape(wokenShape, value) ? (value as WokenSignal) : null;
}

const restedShape = fields<RestedSignal>({ step_id: text, item: count, run_id: text, rests: flag });

export function readRested(value: unknown): RestedSignal | null {
  return hasShape(restedShape, value) ? (value as RestedSignal) : null;
}

/** Temporal knows no longer time than about 290 years, and no limit of 0. */
const longestMs = 100 * 366 * 86_400_000;
const milliseconds = allow(
  `a number of milliseconds from 1 to ${longestMs}`,
  (value) => typeof value === 'number' && value >= 1 && value <= longestMs,
);

function planShape(steps: number): Shape {
  const index = indexBelow(steps);
  const each = fields<NonNullable<PlannedStep['each']>>({
    max_parallel: optional(count),
    tolerate: optional(count),
    enough: optional(count),
    judges: optional(flag),
  });
  const race = fields<NonNullable<PlannedStep['race']>>({ count, of: listOf(index) });
  const step = fields<PlannedStep>({
    id: text,
    capability: text,
    dependencies: listOf(index),
    total_timeout_ms: milliseconds,
    escalates: optional(flag),
    run_if: optional(text),
    race: optional(race),
    is_callable_off: optional(flag),
    decides: optional(flag),
    each: optional(each),
    repeats: optional(flag),
    continues: optional(flag),
    inline: optional(flag),
  });
  const kept = optional(listOf(index));
  return fields<RunPlan>({ steps: listOf(step), max_in_flight: count, reused: kept, skipped: kept });
}

function carriedShape(steps: number): Shape {
  return fields<WorkflowSnapshot>({
    machine: snapshotShape(steps),
    deadline_ms: nullable(number),
    left_ms: optional(number),
    control: controlShape,
    early_wakes: listOf(text),
    seen_versions: recordOf(count),
    has_waited: flag,
  });
}

function countSteps(input: unknown): number {
  const { plan } = (input ?? {}) as { readonly plan?: { readonly steps?: unknown } | null };
  return Array.isArray(plan?.steps) ? plan.steps.length : 0;
}

/** Versions of the engine beyond are no later ones. */
const latestEngine = 1_000;

/** The engine version of an input that waits for a newer worker; null: this one has to know it. */
export function newerEngineOf(input: unknown): number | null {
  const { engine_version, run_id, escalation_id } = (input ?? {}) as Readonly<Record<string, unknown>>;
  const isNewer =
    typeof engine_version === 'number' &&
    Number.isInteger(engine_version) &&
    engine_version > engineVersion &&
    engine_version <= latestEngine;
  return isNewer && typeof (run_id ?? escalation_id) === 'string' ? engine_version : null;
}

/** Finds why a value is no input of a workflow; null: it is one. */
export type FindFault = (input: unknown) => string | null;

export const findRunFault: FindFault = (input) => {
  const steps = countSteps(input);
  return fields<RunPipelineInput>({
    engine_version: count,
    run_id: text,
    project_id: text,
    pipeline: text,
    version: text,
    plan: planShape(steps),
    timeout_ms: nullable(milliseconds),
    heartbeat_timeout_ms: milliseconds,
    has_search_attributes: flag,
    run_url: text,
    dispatch_reasons: listOf(text),
    history_events: optional(count),
    control: optional(controlShape),
    parent: optional(fields<ParentUnit>({ workflow_id: text, step_id: text, item: count })),
    snapshot: optional(carriedShape(steps)),
  })(input, 'input');
};

const instant = allow('a time', (value) => typeof value === 'string' && Number.isFinite(Date.parse(value)));
const failure = fields<Pick<Failure, 'code' | 'message'>>({ code: text, message: text });
const level = fields<{ readonly level: number }>({ level: count });

const inLine = fields<NonNullable<LadderPosition['in_line']>>({ until: nullable(count) });

const stage = choiceOf('type', {
  execute: level,
  advise: level,
  end: choiceOf('outcome', {
    succeeded: fields<{ readonly skill_id: string }>({ skill_id: optional(text) }),
    skipped: fields({}),
    failed: fields({ error: failure }),
    cancelled: fields({ error: failure }),
    review: fields({ review_id: text, due_at: instant, error: failure }),
    held: (value, at) => fields({ from: place, in_line: optional(inLine) })(value, at),
  } satisfies Record<LadderEnd['outcome'], Shape>),
} satisfies Record<LadderStage['type'], Shape>);

const place = fields<Pick<LadderPosition, 'transition' | 'command'>>({ transition: count, command: stage });
const review = fields<{ readonly review_id: string }>({ review_id: text });

/** Of a ladder that begins or waited for a person. */
const resumption: Shape = (value, at) => (hasShape(review, value) ? null : place(value, at));

export const findLadderFault: FindFault = (input) =>
  fields<EscalateInput>({
    engine_version: count,
    escalation_id: text,
    waits_for_reviews: flag,
    from: resumption,
    heartbeat_timeout_ms: milliseconds,
    url: text,
  })(input, 'input');

export const findScheduledFault: FindFault = (input) =>
  fields<ScheduledRunInput>({ project_id: text, schedule_id: text })(input, 'input');

// Results of activities, which a person may complete by hand.

const position = fields<LadderPosition>({
  escalation_id: text,
  transition: count,
  command: stage,
  is_held: optional(flag),
  in_line: optional(inLine),
});

export function isLadderPosition(result: unknown): result is LadderPosition {
  return hasShape(position, result);
}

const submissions: readonly Shape[] = [
  fields({ run_id: text }),
  fields({ skipped: text }),
  fields({ refused: failure }),
];

export function isSubmission(result: unknown): result is ScheduledSubmission {
  return submissions.some((shape) => hasShape(shape, result));
}

const stepEnds: readonly Shape[] = [
  fields({ skipped: flag }),
  fields({
    waiting: fields({ awaiting: text, until: nullable(instant), ref: optional(recordOf(anything)) }),
  }),
  fields({ endpoint: nullable(text), cost_usd: number, duration_ms: number }),
];

/** Whether it is the result of the activity of a step: done, waiting, or skipped by a person. */
export function isStepResult(result: unknown): boolean {
  return stepEnds.some((shape) => hasShape(shape, result));
}
