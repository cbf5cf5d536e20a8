/**
 * The ladder of a step that failed for real, without models: the driver of every ladder, over the mocks and their time.
 * The mocks teach no skills and have no models, so level 0 repairs what the schema allows, and then a person is asked.
 */
import type { Failure, JsonObject } from '../contracts/primitives.ts';
import type { ReviewKind } from '../contracts/review.ts';
import type { CompiledStep } from '../core/definition/compile.ts';
import { capabilityOf, resolveEscalation } from '../core/definition/step-settings.ts';
import { classOfCorrection } from '../core/ladder/classify-failure.ts';
import type { CorrectionTask } from '../core/ladder/correction.ts';
import {
  interruptLadder,
  type LadderOutcome,
  type LadderPorts,
  makeTransition,
  transientDelayMs,
} from '../core/ladder/drive.ts';
import { maskError } from '../core/ladder/error-text.ts';
import type { ExecutionEnd } from '../core/ladder/execute-correction.ts';
import { type CorrectionPorts, interruptionMs } from '../core/ladder/execute-correction.ts';
import { type AskedReview, followStop, reviewKindOf } from '../core/ladder/human-review.ts';
import { type ErrorContext, type Ladder, openStepLadder } from '../core/ladder/ladder.ts';
import { ladderMs, reviewDueMs } from '../core/ladder/levels.ts';
import type { UnitEnd, UnitWaiting } from '../core/run/drive.ts';
import type { CallExecution } from './execute-call.ts';
import type { LocalContext } from './local-context.ts';
import type { MockReview } from './mock-reviewer.ts';
import type { UnitRecord } from './run-journal.ts';
import { cancelledEnd } from './run-journal.ts';

/** The review that a ladder has asked. */
export interface AskedMock {
  readonly kind: ReviewKind;
  readonly asked: MockReview;
}

/** A step on its ladder. */
export interface ClimbingStep {
  readonly unit: UnitRecord;
  readonly step: CompiledStep;
  /** Inputs that have failed, the author's own first. */
  readonly failed: [JsonObject, ...JsonObject[]];
  ladder: Ladder;
  /** The level that was tried last. */
  level: number;
  /** Why it escalated, or asks. */
  failure: Failure;
  review: AskedMock | null;
}

export type ClimbEnd = UnitEnd | UnitWaiting;

/** Runs an input as the step's next revision. */
export type RunInput = (climbing: ClimbingStep, input: JsonObject) => Promise<CallExecution>;

function errorContext({ world }: LocalContext): ErrorContext {
  return { now: Math.floor(world.time.now() / 1_000), fingerprintOf: maskError };
}

export function openLadder(
  context: LocalContext,
  { input, ...failed }: Pick<ClimbingStep, 'unit' | 'step' | 'failure'> & { readonly input: JsonObject },
): ClimbingStep {
  const policy = resolveEscalation(context.definition, failed.step.definition);
  const { failure } = failed;
  const ladder = openStepLadder({ policy, failure, revision: 0 }, errorContext(context));
  return { ...failed, failed: [input], ladder, level: 0, review: null };
}

export function taskOf(
  { world }: LocalContext,
  { step, failed, ladder }: ClimbingStep,
): CorrectionTask & { readonly current: JsonObject } {
  const capability = capabilityOf(step.definition);
  return {
    capability,
    repair: ladder.policy?.repair ?? 'off',
    spec: { schema: world.fleet.inputSchema(capability), find: world.fleet.findInputFaults(capability) },
    original: failed[0],
    current: failed.at(-1) ?? failed[0],
    failed,
  };
}

/** From where the ladder stands to its end, or to the question to a person. */
export async function climb(
  context: LocalContext,
  climbing: ClimbingStep,
  runInput: RunInput,
): Promise<ClimbEnd> {
  const { time } = context.world;
  const endsAt = time.now() + ladderMs;
  while (!context.climbing.aborted) {
    const isInTime = time.now() < endsAt;
    const made = isInTime
      ? await makeTransition(portsOf(context, climbing, runInput), climbing.ladder)
      : interruptLadder(climbing.ladder, 'timed_out');
    let delayMs = 'delay_ms' in made ? made.delay_ms : 0;
    if ('next' in made) {
      climbing.ladder = made.next;
      if (made.next.command.type === 'execute') climbing.level = made.next.command.level;
      const end = endOf(context, climbing, made.outcome);
      if (end !== null) return end;
      delayMs = transientDelayMs(made.next, even);
    }
    if (delayMs > 0) await time.sleep(delayMs, context.climbing);
  }
  return cancelledEnd;
}

/** Without jitter. */
const even = 0.5;

function portsOf(context: LocalContext, climbing: ClimbingStep, runInput: RunInput): LadderPorts {
  const correction: CorrectionPorts = {
    task: taskOf(context, climbing),
    error: climbing.ladder.history.at(-1)?.error ?? null,
    stored: () => Promise.resolve([]),
    matchTemplates: () => Promise.resolve([]),
    ask: () => Promise.resolve({ answer: { kind: 'unavailable' }, model: null, skills: [] }),
    run: async ({ input, source }) => {
      const end = toExecutionEnd(context, await runInput(climbing, input as JsonObject));
      if (end.kind === 'failed') climbing.failed.push(input as JsonObject);
      return { input, source, end };
    },
  };
  return {
    ...errorContext(context),
    work: { kind: 'step', correction: () => Promise.resolve(correction) },
    consultOthers: () => Promise.resolve(null),
    advise: () => Promise.resolve({ kind: 'unavailable' }),
  };
}

const outOfMoney: Failure = { code: 'budget_exhausted', message: 'the budget of the run is used up' };

/** A correction waits for nobody: without an instance it comes again, without money it has failed. */
function toExecutionEnd({ world }: LocalContext, done: CallExecution): ExecutionEnd {
  switch (done.kind) {
    case 'succeeded':
      return { kind: 'succeeded' };
    case 'failed':
    case 'unknown':
      return { kind: 'failed', class: classOfCorrection(done.error), error: done.error };
    case 'cancelled':
      return { kind: 'interrupted', delayMs: interruptionMs };
    case 'waiting': {
      const { awaiting, until } = done.wait;
      if (awaiting === 'budget') return { kind: 'failed', class: 'budget', error: outOfMoney };
      const delayMs = (until ?? 0) - world.time.now();
      return { kind: 'interrupted', delayMs: Math.max(interruptionMs, delayMs) };
    }
  }
}

/** Null while it goes on. */
function endOf(context: LocalContext, climbing: ClimbingStep, outcome: LadderOutcome): ClimbEnd | null {
  switch (outcome.kind) {
    case 'goes_on':
      return null;
    case 'succeeded':
      return { state: 'succeeded' };
    case 'stopped':
      return askPerson(context, climbing, outcome);
    case 'ended':
      return outcome.error === null ? { state: 'succeeded' } : { state: 'failed', error: outcome.error };
  }
}

function askPerson(
  context: LocalContext,
  climbing: ClimbingStep,
  stopped: Extract<LadderOutcome, { kind: 'stopped' }>,
): ClimbEnd {
  const { unit, step, ladder, review } = climbing;
  const jobType = capabilityOf(step.definition);
  const consequence = followStop({ ...stopped, policy: ladder.policy, jobType }, askedBy(climbing));
  climbing.failure = consequence.error;
  if (consequence.kind === 'end') return { state: consequence.state, error: consequence.error };
  const wake = (): void => context.wake(unit);
  const dueMs = reviewDueMs(context.priority);
  if (consequence.kind === 'ask_again' && review !== null) {
    context.reviewer.reopen(review.asked, { step: unit.id, dueMs }, wake);
    return inReview(context, climbing, review.asked);
  }
  const kind = reviewKindOf(stopped.reason);
  const asked = context.reviewer.open({ step: unit.id }, dueMs, wake);
  climbing.review = { kind, asked };
  return inReview(context, climbing, asked);
}

function askedBy({ review }: ClimbingStep): AskedReview | null {
  if (review === null) return null;
  const { kind, asked } = review;
  return { kind, round: asked.round, isResolved: asked.decision !== null };
}

export function inReview(
  { journal }: LocalContext,
  { unit, failure }: ClimbingStep,
  { review_id, dueAt }: MockReview,
): UnitWaiting {
  journal.move(unit, 'in_review', { error: failure, data: { review_id, error: { ...failure } } });
  return { state: 'waiting', wait: { awaiting: 'review', until: dueAt, ladder: true, ref: review_id } };
}
