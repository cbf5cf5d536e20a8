/**
 * The ladder of a step that failed for real, without models: the driver of every ladder, over the mocks and their time.
 * The mocks teach no skills and have no models, so level 0 repairs what the schema allows, and then a person is asked.
 */
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import { capabilityOf, resolveEscalation } from '../core/definition/step-settings.ts';
import { classOfCorrection } from '../core/ladder/classify-failure.ts';
import { type CorrectionTask, proposeCorrections } from '../core/ladder/correction.ts';
import {
  interruptLadder,
  type LadderOutcome,
  type LadderPorts,
  makeTransition,
  transientDelayMs,
} from '../core/ladder/drive.ts';
import { maskError } from '../core/ladder/error-text.ts';
import {
  type CorrectionPorts,
  type ExecutionEnd,
  interruptionMs,
} from '../core/ladder/execute-correction.ts';
import {
  type AskedReview,
  followDecision,
  followStop,
  reviewKindOf,
  undecidedFailure,
} from '../core/ladder/human-review.ts';
import { type ErrorContext, openStepLadder } from '../core/ladder/ladder.ts';
import { ladderMs, reviewDueMs } from '../core/ladder/levels.ts';
import type { SchemaFinding } from '../core/repair/candidate.ts';
import type { ReviewMatter } from '../core/review-actions.ts';
import type { UnitEnd, UnitWaiting } from '../core/run/drive.ts';
import { type CallExecution, executeCall } from './execute-call.ts';
import type { AskedMock, ClimbingStep, LocalRun } from './local-run.ts';
import { type MockReview, requireAction } from './mock-reviewer.ts';
import { type MockDecision, MockFault } from './mocks.ts';
import { cancelledEnd, logEvent, moveUnit, wakeUnit } from './run-journal.ts';

type ClimbEnd = UnitEnd | UnitWaiting;

function errorContext({ world }: LocalRun): ErrorContext {
  return { now: Math.floor(world.time.now() / 1_000), fingerprintOf: maskError };
}

export function openLadder(
  run: LocalRun,
  { input, ...failed }: Pick<ClimbingStep, 'unit' | 'step' | 'failure'> & { readonly input: JsonObject },
): ClimbingStep {
  const policy = resolveEscalation(run.definition, failed.step.definition);
  const { failure } = failed;
  const ladder = openStepLadder({ policy, failure, revision: 0 }, errorContext(run));
  return { ...failed, failed: [input], ladder, level: 0, review: null };
}

function taskOf(
  { world }: LocalRun,
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
export async function climb(run: LocalRun, climbing: ClimbingStep): Promise<ClimbEnd> {
  const { time } = run.world;
  const endsAt = time.now() + ladderMs;
  while (!run.climbing.aborted) {
    const isInTime = time.now() < endsAt;
    const made = isInTime
      ? await makeTransition(portsOf(run, climbing), climbing.ladder)
      : interruptLadder(climbing.ladder, 'timed_out');
    let delayMs = 'delay_ms' in made ? made.delay_ms : 0;
    if ('next' in made) {
      climbing.ladder = made.next;
      if (made.next.command.type === 'execute') climbing.level = made.next.command.level;
      const end = endOf(run, climbing, made.outcome);
      if (end !== null) return end;
      delayMs = transientDelayMs(made.next, even);
    }
    if (delayMs > 0) await time.sleep(delayMs, run.climbing);
  }
  return cancelledEnd;
}

/** Without jitter. */
const even = 0.5;

function portsOf(run: LocalRun, climbing: ClimbingStep): LadderPorts {
  const correction: CorrectionPorts = {
    task: taskOf(run, climbing),
    error: climbing.ladder.history.at(-1)?.error ?? null,
    stored: () => Promise.resolve([]),
    matchTemplates: () => Promise.resolve([]),
    ask: () => Promise.resolve({ answer: { kind: 'unavailable' }, model: null, skills: [] }),
    run: async ({ input, source }) => {
      const end = toExecutionEnd(run, await executeRevision(run, climbing, input as JsonObject));
      if (end.kind === 'failed') climbing.failed.push(input as JsonObject);
      return { input, source, end };
    },
  };
  return {
    ...errorContext(run),
    work: { kind: 'step', correction: () => Promise.resolve(correction) },
    consultOthers: () => Promise.resolve(null),
    advise: () => Promise.resolve({ kind: 'unavailable' }),
  };
}

/** The step with a corrected input: none of its failures count any more. */
async function executeRevision(
  run: LocalRun,
  { unit, step }: ClimbingStep,
  input: JsonObject,
): Promise<CallExecution> {
  unit.counted = 0;
  unit.failedOn.clear();
  moveUnit(run, unit, { state: 'retrying' });
  const done = await executeCall(run, unit, { step, input, stop: run.climbing });
  if (done.kind === 'succeeded') unit.output = done.output;
  return done;
}

const outOfMoney: Failure = { code: 'budget_exhausted', message: 'the budget of the run is used up' };

/** A correction waits for nobody: without an instance it comes again, without money it has failed. */
function toExecutionEnd({ world }: LocalRun, done: CallExecution): ExecutionEnd {
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
function endOf(run: LocalRun, climbing: ClimbingStep, outcome: LadderOutcome): ClimbEnd | null {
  switch (outcome.kind) {
    case 'goes_on':
      return null;
    case 'succeeded':
      return { state: 'succeeded' };
    case 'stopped':
      return askPerson(run, climbing, outcome);
    case 'ended':
      return outcome.error === null ? { state: 'succeeded' } : { state: 'failed', error: outcome.error };
  }
}

function askPerson(
  run: LocalRun,
  climbing: ClimbingStep,
  stopped: Extract<LadderOutcome, { kind: 'stopped' }>,
): ClimbEnd {
  const { unit, step, ladder, review } = climbing;
  const jobType = capabilityOf(step.definition);
  const consequence = followStop({ ...stopped, policy: ladder.policy, jobType }, askedBy(climbing));
  climbing.failure = consequence.error;
  if (consequence.kind === 'end') return { state: consequence.state, error: consequence.error };
  const wake = (): void => wakeUnit(run, unit);
  const dueMs = reviewDueMs(run.priority);
  if (consequence.kind === 'ask_again' && review !== null) {
    run.world.reviewer.reopen(review.asked, { step: unit.id, dueMs }, wake);
    return inReview(run, climbing, review.asked);
  }
  const kind = reviewKindOf(stopped.reason);
  const asked = run.world.reviewer.open({ step: unit.id }, dueMs, wake);
  climbing.review = { kind, asked };
  return inReview(run, climbing, asked);
}

function askedBy({ review }: ClimbingStep): AskedReview | null {
  if (review === null) return null;
  const { kind, asked } = review;
  return { kind, round: asked.round, isResolved: asked.decision !== null };
}

function inReview(
  run: LocalRun,
  { unit, failure }: ClimbingStep,
  { review_id, dueAt }: MockReview,
): UnitWaiting {
  moveUnit(run, unit, { state: 'in_review', error: failure, data: { review_id, error: { ...failure } } });
  return { state: 'waiting', wait: { awaiting: 'review', until: dueAt, ladder: true, ref: review_id } };
}

// What a person decided about a step that failed, or that nobody did in time.

type DecidedStep = ClimbEnd & { readonly output?: Json };

/** Goes on with a step whose review is over. */
export async function resumeReviewed(run: LocalRun, climbing: ClimbingStep): Promise<DecidedStep> {
  const { review, unit, failure } = climbing;
  if (review === null) throw new MockFault(`nobody was asked about step ${unit.id}`);
  const { decision, dueAt } = review.asked;
  const isOver = decision !== null || run.world.time.now() >= (dueAt ?? Infinity);
  if (!isOver) return inReview(run, climbing, review.asked);
  logEvent(run, { type: 'step.reviewed', unit, data: { action: decision?.action ?? 'expired' } });
  if (decision === null) return { state: 'failed', error: undecidedFailure(failure) };
  return follow(run, { climbing, review, decision });
}

interface ReviewedStep {
  readonly climbing: ClimbingStep;
  readonly review: AskedMock;
  readonly decision: MockDecision;
}

async function follow(run: LocalRun, { climbing, review, decision }: ReviewedStep): Promise<DecidedStep> {
  requireAction(climbing.unit.id, matterOf(run, climbing, review), decision);
  const { review_id, round } = review.asked;
  const outcome = await followDecision(climbing.ladder, decision, {
    review_id,
    round,
    input: decidedInput(run, climbing, decision),
    level: climbing.level,
    readCurrent: () => Promise.resolve(taskOf(run, climbing).current),
  });
  switch (outcome.kind) {
    case 'goes_on':
      climbing.ladder = outcome.next;
      return climb(run, climbing);
    case 'answered':
      requireOutput(run, climbing, outcome.output);
      return { state: 'succeeded', output: outcome.output };
    case 'skipped':
      return { state: 'skipped' };
    case 'failed':
      return { state: 'failed', error: outcome.error };
  }
}

function matterOf(run: LocalRun, climbing: ClimbingStep, { kind }: AskedMock): ReviewMatter {
  const { allow_output = false, optional = false } = climbing.step.definition;
  const proposals = proposeCorrections(taskOf(run, climbing));
  return {
    kind,
    run_id: run.runId,
    subject: null,
    escalation_id: null,
    payload: { proposals, allow_output, optional },
  };
}

/** As the API would have refused it. */
function refuse({ step }: ClimbingStep, what: string, findings: readonly SchemaFinding[]): MockFault {
  const seen = findings.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
  return new MockFault(`the ${what} decided for step ${step.definition.id} is not possible: ${seen}`);
}

function requireOutput({ world }: LocalRun, climbing: ClimbingStep, output: Json): void {
  const faults = world.fleet.checkOutput(capabilityOf(climbing.step.definition), output);
  if (faults.length > 0) throw refuse(climbing, 'output', faults);
}

/** @returns undefined for a decision that brings none */
function decidedInput(run: LocalRun, climbing: ClimbingStep, decision: MockDecision): JsonObject | undefined {
  if (decision.action !== 'approve' && decision.action !== 'edit') return undefined;
  const task = taskOf(run, climbing);
  const chosen =
    decision.action === 'edit' ? decision.input : proposeCorrections(task)[decision.proposal ?? 0]?.input;
  if (chosen === undefined) {
    throw new MockFault(`there is no such input to ${decision.action} for step ${climbing.unit.id}`);
  }
  const faults = task.spec?.find(chosen) ?? [];
  if (faults.length > 0) throw refuse(climbing, 'input', faults);
  return chosen as JsonObject;
}
