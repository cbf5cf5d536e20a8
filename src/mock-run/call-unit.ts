/** A step that is a call: the call itself, its ladder when the input is refused, and its waits. */
import type { Failure, JsonObject } from '../contracts/primitives.ts';
import { isCorrectable } from '../core/ladder/classify-failure.ts';
import type { UnitEnd, UnitWaiting } from '../core/run/drive.ts';
import { type ClimbingStep, climb, openLadder, type RunInput } from './correct-step.ts';
import { type CallExecution, executeCall } from './execute-call.ts';
import { resumeReviewed } from './follow-decision.ts';
import { type LocalContext, stepOf } from './local-context.ts';
import type { MockReview } from './mock-reviewer.ts';
import { type MockDecision, MockFault } from './mocks.ts';
import { cancelledEnd, keyOfUnit, type UnitName, type UnitRecord, type UnitResults } from './run-journal.ts';

export type Executed = UnitEnd | UnitWaiting | { readonly state: 'escalated' };

interface CallUnits {
  execute(unit: UnitRecord, input: JsonObject, escalates: boolean): Promise<Executed>;
  /** Climbs the ladder of a step that escalated. */
  climb(unit: UnitName): Promise<UnitEnd | UnitWaiting>;
  /** Its review is over. */
  follow(unit: UnitName): Promise<UnitEnd | UnitWaiting>;
  /** Why it escalated last. */
  failureOf(unit: UnitName): Failure | undefined;
}

export function createCallUnits(context: LocalContext, results: UnitResults): CallUnits {
  const { journal, stop, climbing } = context;
  const ladders = new Map<string, ClimbingStep>();
  const money = createBudgetWaits(context);
  const ladderOf = (unit: UnitName): ClimbingStep => ladders.get(keyOfUnit(unit)) as ClimbingStep;

  const finish = (unit: UnitRecord, ended: CallExecution): Executed => {
    switch (ended.kind) {
      case 'succeeded':
        return results.succeed(unit, ended.output);
      case 'failed':
      case 'unknown':
        return results.end(unit, { state: ended.kind, error: ended.error });
      case 'cancelled':
        return results.end(unit, cancelledEnd);
      case 'waiting':
        if (ended.wait.awaiting === 'budget') money.begin(unit);
        else wakeAtRegistration(context, unit);
        return results.wait(unit, ended.wait);
    }
  };

  const runInput: RunInput = async ({ unit, step }, input) => {
    unit.counted = 0;
    unit.failedOn.clear();
    journal.move(unit, 'retrying');
    const done = await executeCall(context, step, unit, input, climbing);
    if (done.kind === 'succeeded') unit.output = done.output;
    return done;
  };

  /** What was stopped because the run has failed stays failed as it was. */
  const close = ({ unit, failure }: ClimbingStep, ended: UnitEnd | UnitWaiting): UnitEnd | UnitWaiting => {
    if (ended.state === 'waiting') return ended;
    const isGivenUp = ended.state === 'cancelled' && !context.isCancelled();
    return results.end(unit, isGivenUp ? { state: 'failed', error: failure } : ended);
  };

  return {
    execute: async (unit, input, escalates) => {
      if (money.take(unit)) return results.end(unit, { state: 'skipped' });
      const step = stepOf(context, unit.id);
      const done = await executeCall(context, step, unit, input, stop);
      if (!escalates || done.kind !== 'failed' || !isCorrectable(done.error.code)) return finish(unit, done);
      const failure = done.error;
      ladders.set(keyOfUnit(unit), openLadder(context, { unit, step, input, failure }));
      journal.log('step.escalated', unit, { error: { ...failure } });
      return { state: 'escalated' };
    },
    climb: async (unit) => {
      const ladder = ladderOf(unit);
      return close(ladder, await climb(context, ladder, runInput));
    },
    follow: async (unit) => {
      const ladder = ladderOf(unit);
      const { output, ...ended } = await resumeReviewed(context, ladder, runInput);
      if (output !== undefined) ladder.unit.output = output;
      return close(ladder, ended as UnitEnd | UnitWaiting);
    },
    failureOf: (unit) => ladders.get(keyOfUnit(unit))?.failure,
  };
}

function wakeAtRegistration(context: LocalContext, unit: UnitName): void {
  const { world } = context;
  const capability = stepOf(context, unit.id).definition.capability ?? '';
  const moment = world.fleet.nextRegistration(capability);
  if (moment !== null) world.time.at(moment, () => context.wake(unit));
}

interface BudgetWaits {
  begin(unit: UnitName): void;
  /** It does not wait any more. @returns whether a person has skipped it */
  take(unit: UnitName): boolean;
}

/** Steps that wait for money: one question to a person for all of them, and what follows from the answer. */
function createBudgetWaits(context: LocalContext): BudgetWaits {
  const waiting = new Map<string, UnitName>();
  const skipped = new Set<string>();
  let review: MockReview | null = null;
  const keyOf = ({ id, item }: UnitName): string => `${id}/${item}`;

  const wakeAll = (): void => {
    for (const unit of waiting.values()) context.wake(unit);
  };
  context.budget.onRaise(() => {
    review = null;
    wakeAll();
  });

  const decided = (): void => {
    const decision = review?.decision ?? null;
    review = null;
    if (decision !== null) follow(decision);
  };

  const follow = ({ action, budget_ceiling_usd }: MockDecision): void => {
    switch (action) {
      case 'raise':
        context.budget.scarce().raise(budget_ceiling_usd ?? null);
        break;
      case 'skip':
        for (const [key, unit] of waiting) {
          if (stepOf(context, unit.id).definition.optional === true) skipped.add(key);
        }
        wakeAll();
        break;
      case 'cancel':
        context.cancelRun();
        break;
      default:
        throw new MockFault(`a review of the budget takes raise, skip or cancel, not ${action}`);
    }
  };

  return {
    begin: (unit) => {
      waiting.set(keyOf(unit), unit);
      review ??= context.reviewer.open('budget', null, decided);
    },
    take: (unit) => {
      waiting.delete(keyOf(unit));
      return skipped.delete(keyOf(unit));
    },
  };
}
