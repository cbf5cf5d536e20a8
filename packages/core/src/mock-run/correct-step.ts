/**
 * The ladder of a step with a real failure, without models: the driver of every ladder, over the mocks and their time.
 * The mocks have no skills and no models, so level 0 repairs what the schema allows, and then a review is opened.
 */
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import { capabilityOf, resolveEscalation } from '../definition/step-settings.ts';
import { summarizeFindings } from '../json/values.ts';
import { type AnsweredTask, proposeCorrections } from '../ladder/correction.ts';
import {
  interruptLadder,
  type LadderOutcome,
  type LadderPorts,
  makeTransition,
  transientDelayMs,
} from '../ladder/drive.ts';
import { maskError } from '../ladder/error-text.ts';
import {
  type CorrectionPorts,
  type ExecutionEnd,
  failedCorrection,
  interruptionMs,
} from '../ladder/execute-correction.ts';
import { followDecision, followStop, reviewKindOf, undecidedFailure } from '../ladder/human-review.ts';
import { type ErrorContext, openStepLadder } from '../ladder/ladder.ts';
import { ladderMs, reviewDueMs } from '../ladder/levels.ts';
import type { SchemaFinding } from '../repair/candidate.ts';
import { decidedInput } from '../review-actions.ts';
import type { UnitEnd, UnitWaiting } from '../run/drive.ts';
import type { Wait } from '../run/machine-state.ts';
import { type CallExecution, even, executeCall } from './execute-call.ts';
import {
  type ClimbingStep,
  isCancelled,
  isPaused,
  type LocalRun,
  stopOf,
  type UnitRecord,
} from './local-run.ts';
import { MockFault } from './mocks.ts';
import { type DecidedReview, isOver, type MockReview, requireAction } from './outside/mock-reviewer.ts';
import { cancelledEnd, endUnit, logEvent, moveUnit, wakeUnit } from './run-journal.ts';

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
  return { ...failed, failed: [input], ladder, level: 0 };
}

function taskOf(
  { world }: LocalRun,
  { step, failed, ladder }: ClimbingStep,
): AnsweredTask & { readonly current: JsonObject } {
  const capability = capabilityOf(step.definition);
  const { inputSchema, findInputFaults } = world.fleet.require(capability);
  return {
    capability,
    repair: ladder.policy?.repair ?? 'off',
    spec: { schema: inputSchema, find: findInputFaults },
    original: failed[0],
    current: failed.at(-1) ?? failed[0],
    failed,
  };
}

/** Climbs the ladder of a step that escalated. */
export async function climbUnit(run: LocalRun, { ladder }: UnitRecord): Promise<ClimbEnd> {
  const climbing = ladder as ClimbingStep;
  return close(run, climbing, await climb(run, climbing));
}

/** Resumes after the review of the step's ladder. */
export async function followReview(run: LocalRun, { ladder }: UnitRecord): Promise<ClimbEnd> {
  const climbing = ladder as ClimbingStep;
  return close(run, climbing, await resumeReviewed(run, climbing));
}

/** A step that was stopped because its run failed keeps its own failure; one that was called off has ended. */
function close(run: LocalRun, { unit, failure }: ClimbingStep, ended: ClimbEnd): ClimbEnd {
  if (ended.state === 'waiting') return ended;
  const isGivenUp = ended.state === 'cancelled' && unit.state !== 'cancelled' && !isCancelled(run);
  return endUnit(run, unit, isGivenUp ? { state: 'failed', error: failure } : ended);
}

/** Climbs from the ladder's position to its end, or to a review. */
async function climb(run: LocalRun, climbing: ClimbingStep): Promise<ClimbEnd> {
  const { time } = run.world;
  const endsAt = time.now() + ladderMs;
  const stop = stopOf(climbing.unit, run.climbing);
  while (!stop.aborted) {
    if (isPaused(run)) return held({ awaiting: 'retry', until: time.now() });
    const isInTime = time.now() < endsAt;
    const made = isInTime
      ? await makeTransition(portsOf(run, climbing), climbing.ladder)
      : interruptLadder(climbing.ladder, 'timed_out');
    if ('in_line' in made) return held({ awaiting: 'slot', until: made.in_line.until });
    let delayMs = 'delay_ms' in made ? made.delay_ms : 0;
    if ('next' in made) {
      climbing.ladder = made.next;
      if (made.next.command.type === 'execute') climbing.level = made.next.command.level;
      const end = endOf(run, climbing, made.outcome);
      if (end !== null) return end;
      delayMs = transientDelayMs(made.next, even);
    }
    if (delayMs > 0) await time.sleep(delayMs, stop);
  }
  return cancelledEnd;
}

/** In a pause, the wait is over at once, and the machine resumes the ladder after the pause (M9). */
function held(wait: Pick<Wait, 'awaiting' | 'until'>): UnitWaiting {
  return { state: 'waiting', wait: { ...wait, ladder: true, ref: null } };
}

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

/** Executes the step with a corrected input; failures of earlier inputs no longer count. */
async function executeRevision(
  run: LocalRun,
  { unit, step }: ClimbingStep,
  input: JsonObject,
): Promise<CallExecution> {
  if (unit.queued === undefined) {
    unit.counted = 0;
    delete unit.wrong;
    unit.failedOn.clear();
    moveUnit(run, unit, { state: 'retrying' });
  }
  const done = await executeCall(run, unit, {
    step,
    input,
    stop: stopOf(unit, run.climbing),
    mayWait: false,
  });
  if (done.state === 'succeeded') unit.output = done.output;
  return done;
}

const outOfMoney: Failure = { code: 'budget_exhausted', message: 'the budget of the run is used up' };

/** A correction waits for a slot alone: without an instance it is retried, without budget it fails. */
function toExecutionEnd({ world }: LocalRun, done: CallExecution): ExecutionEnd {
  switch (done.state) {
    case 'succeeded':
      return { kind: 'succeeded' };
    case 'failed':
    case 'unknown':
      return failedCorrection(done.error);
    case 'cancelled':
      return { kind: 'interrupted', delayMs: interruptionMs };
    case 'waiting': {
      const { awaiting, until } = done.wait;
      if (awaiting === 'slot') return { kind: 'in_line', until };
      if (awaiting === 'budget') return { kind: 'failed', class: 'budget', error: outOfMoney };
      const delayMs = (until ?? 0) - world.time.now();
      return { kind: 'interrupted', delayMs: Math.max(interruptionMs, delayMs) };
    }
  }
}

/** Null while the ladder continues. */
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
  const { unit, step, ladder } = climbing;
  const { reviewer } = run.world;
  const { review: asked } = unit;
  const last = asked === undefined ? null : { ...asked, isResolved: asked.decision !== null };
  const jobType = capabilityOf(step.definition);
  const consequence = followStop({ ...stopped, policy: ladder.policy, jobType }, last);
  climbing.failure = consequence.error;
  if (consequence.kind === 'end') return { state: consequence.state, error: consequence.error };
  const wake = (): void => wakeUnit(run, unit);
  const dueMs = reviewDueMs(run.priority);
  if (consequence.kind === 'ask_again' && asked !== undefined) {
    reviewer.reopen(asked, dueMs, wake);
    return inReview(run, climbing, asked);
  }
  unit.review = reviewer.open({ kind: reviewKindOf(stopped.reason), step: unit.id }, dueMs, wake);
  return inReview(run, climbing, unit.review);
}

function inReview(
  run: LocalRun,
  { unit, failure }: ClimbingStep,
  { review_id, dueAt }: MockReview,
): UnitWaiting {
  moveUnit(run, unit, { state: 'in_review', error: failure, data: { review_id, error: { ...failure } } });
  return { state: 'waiting', wait: { awaiting: 'review', until: dueAt, ladder: true, ref: review_id } };
}

/** Resumes a step after a person's decision, or after the review expired. */
async function resumeReviewed(run: LocalRun, climbing: ClimbingStep): Promise<ClimbEnd> {
  const { unit, failure } = climbing;
  const { review } = unit;
  if (review === undefined) throw new MockFault(`nobody was asked about step ${unit.id}`);
  if (!isOver(review, run.world.time.now())) return inReview(run, climbing, review);
  const { decision } = review;
  logEvent(run, { type: 'step.reviewed', unit, data: { action: decision?.action ?? 'expired' } });
  if (decision === null) return { state: 'failed', error: undecidedFailure(failure) };
  return follow(run, climbing, { ...review, decision });
}

async function follow(run: LocalRun, climbing: ClimbingStep, review: DecidedReview): Promise<ClimbEnd> {
  const { unit, step, ladder, level } = climbing;
  const { review_id, round, decision } = review;
  const task = taskOf(run, climbing);
  const { findOutputFaults } = run.world.fleet.require(task.capability);
  const proposals = proposeCorrections(task);
  requireAction(step.definition, review, proposals);
  const input = decidedInput({ proposals }, decision);
  requireInput(climbing, review, { task, input });
  const readCurrent = () => Promise.resolve(task.current);
  const outcome = await followDecision(ladder, decision, { review_id, round, input, level, readCurrent });
  switch (outcome.kind) {
    case 'goes_on':
      climbing.ladder = outcome.next;
      return climb(run, climbing);
    case 'answered':
      requirePossible(climbing, 'output', findOutputFaults(outcome.output));
      unit.output = outcome.output;
      return { state: 'succeeded' };
    case 'skipped':
      return { state: 'skipped' };
    case 'failed':
      return { state: 'failed', error: outcome.error };
  }
}

/** @throws MockFault for a missing input, or one that the capability refuses */
function requireInput(
  climbing: ClimbingStep,
  { decision: { action } }: DecidedReview,
  { task: { spec }, input }: { readonly task: AnsweredTask; readonly input: Json | undefined },
): void {
  if (action !== 'approve' && action !== 'edit') return;
  if (input === undefined) {
    throw new MockFault(`there is no such input to ${action} for step ${climbing.unit.id}`);
  }
  requirePossible(climbing, 'input', spec?.find(input) ?? []);
}

/** @throws MockFault where the API would refuse the decision */
function requirePossible({ unit }: ClimbingStep, what: string, findings: readonly SchemaFinding[]): void {
  if (findings.length === 0) return;
  const seen = summarizeFindings(findings);
  throw new MockFault(`the ${what} decided for step ${unit.id} is not possible: ${seen}`);
}
