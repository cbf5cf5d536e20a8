/**
 * The ladder of a step that failed for real, as it is without models: what the schema allows to be repaired is repaired
 * where the pipeline lets it, and then a person is asked. The levels are the ladder machine's.
 */
import type { Failure, JsonObject, Priority } from '../contracts/primitives.ts';
import type { CompiledStep } from '../core/definition/compile/compile-definition.ts';
import {
  type ResolvedEscalation,
  resolveEscalation,
} from '../core/definition/compile/escalation-settings.ts';
import { capabilityOf } from '../core/definition/step-kind.ts';
import { classOfCorrection } from '../core/ladder/classify-failure.ts';
import { historyTextOf } from '../core/ladder/error-text.ts';
import { maskError } from '../core/ladder/fingerprint.ts';
import { humanLevel } from '../core/ladder/labels.ts';
import { applyLadder, createAttempt, startLadder } from '../core/ladder/machine.ts';
import { stopFailure } from '../core/ladder/stop-reason.ts';
import type { LadderEvent, LadderState } from '../core/ladder/types.ts';
import { applyRepair } from '../core/repair/operation.ts';
import { proposeRepairs, type Repairs } from '../core/repair/propose-repairs.ts';
import type { UnitEnd, UnitWaiting } from '../core/run/drive.ts';
import { findProtectedChange } from '../core/skills/template/protected.ts';
import type { CallExecution } from './execute-call.ts';
import type { LocalContext } from './local-context.ts';
import type { MockReview } from './mock-reviewer.ts';
import type { UnitRecord } from './run-journal.ts';

export interface StepLadder {
  readonly unit: UnitRecord;
  readonly step: CompiledStep;
  readonly policy: ResolvedEscalation;
  readonly original: JsonObject;
  /** That failed last. */
  current: JsonObject;
  state: LadderState;
  failure: Failure;
  review: MockReview | null;
}

export type ClimbEnd = UnitEnd | UnitWaiting;

/** Runs an input as the step's next revision. */
export type RunInput = (ladder: StepLadder, input: JsonObject) => Promise<CallExecution>;

export function openLadder(
  { definition }: LocalContext,
  {
    unit,
    step,
    input,
    failure,
  }: Pick<StepLadder, 'unit' | 'step' | 'failure'> & { readonly input: JsonObject },
): StepLadder {
  const policy = resolveEscalation(definition, step.definition);
  const attempt = createAttempt({ level: 0, ...described(failure, 0) });
  const state = startLadder({
    start_level: policy.needs_person ? humanLevel : 0,
    lowest_level: policy.start_level,
    max_level: policy.max_level,
    history: [attempt],
    advice: [],
  });
  return { unit, step, policy, original: input, current: input, state, failure, review: null };
}

/** The text that a history keeps of an error. */
export function described(failure: Failure, attempted_at: number) {
  const error = historyTextOf(failure);
  return { attempted_at, error, fingerprint: maskError(error) };
}

/** From where the ladder stands to its end, or to the question to a person. */
export async function climb(
  context: LocalContext,
  ladder: StepLadder,
  runInput: RunInput,
): Promise<ClimbEnd> {
  for (;;) {
    const { command } = ladder.state;
    if (command.type === 'succeed') return { state: 'succeeded' };
    if (command.type === 'stop') return askPerson(context, ladder);
    const isRules = command.type === 'execute' && command.level === 0;
    const event = isRules
      ? await executeRules(context, ladder, runInput)
      : ({ type: 'unavailable' } as const);
    if (event === null) return cancelledEnd;
    ladder.state = applyLadder(ladder.state, event);
  }
}

export const cancelledEnd: UnitEnd = {
  state: 'cancelled',
  error: { code: 'run_cancelled', message: 'the step was cancelled' },
};

/** @returns null when the run is being cancelled */
async function executeRules(
  context: LocalContext,
  ladder: StepLadder,
  runInput: RunInput,
): Promise<LadderEvent | null> {
  const { applicable } = findRepairs(context, ladder);
  const repaired =
    applicable !== null && ladder.policy.repair === 'apply'
      ? (applyRepair(ladder.current, applicable.operations) as JsonObject | undefined)
      : undefined;
  if (repaired === undefined || findProtectedChange(ladder.original, repaired) !== null) {
    const capability = capabilityOf(ladder.step.definition);
    const message = `level 0 has no template for an input of ${capability}`;
    return { type: 'no_template', ...described({ code: 'no_template', message }, 0) };
  }
  const end = await runInput(ladder, repaired);
  switch (end.kind) {
    case 'succeeded':
      return { type: 'succeeded' };
    case 'failed':
    case 'unknown':
      return { type: 'failed', class: classOfCorrection(end.error), ...described(end.error, 0) };
    case 'cancelled':
    case 'waiting':
      return null;
  }
}

export function findRepairs({ world }: LocalContext, { step, policy, current }: StepLadder): Repairs {
  if (policy.repair === 'off') return { proposals: [], applicable: null };
  const capability = capabilityOf(step.definition);
  return proposeRepairs({
    schema: world.fleet.inputSchema(capability),
    input: current,
    errorsOf: world.fleet.findInputFaults(capability),
  });
}

const maxRounds = 3;
function dueMs(priority: Priority): number {
  return priority === 'interactive' ? 3_600_000 : 86_400_000;
}

/** Of a ladder that stopped; the same question again when the last answer did not help. */
export function askPerson(context: LocalContext, ladder: StepLadder): ClimbEnd {
  const { state, policy, unit, review } = ladder;
  const command = state.command as Extract<LadderState['command'], { type: 'stop' }>;
  ladder.failure = stopFailure(command.reason, command.error);
  if (policy.on_exhausted === 'fail') return { state: 'failed', error: ladder.failure };
  const wake = (): void => context.wake(unit);
  if (review === null) {
    ladder.review = context.reviewer.open({ step: unit.id }, dueMs(context.priority), wake);
  } else if (review.round >= maxRounds) return { state: 'failed', error: ladder.failure };
  else context.reviewer.reopen(review, unit.id, wake);
  return inReview(context, ladder);
}

export function inReview({ journal }: LocalContext, { unit, review, failure }: StepLadder): UnitWaiting {
  const { review_id, dueAt } = review as MockReview;
  journal.move(unit, 'in_review', { error: failure, data: { review_id, error: { ...failure } } });
  return { state: 'waiting', wait: { awaiting: 'review', until: dueAt, ladder: true, ref: review_id } };
}
