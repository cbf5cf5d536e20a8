/** A step that is a call: the call itself, its ladder when the input is refused, and its waits. */

import type { Failure, JsonObject } from '../contracts/primitives.ts';
import { isCorrectable } from '../core/ladder/correctable.ts';
import type { UnitEnd, UnitWaiting } from '../core/run/drive.ts';
import { createBudgetWaits } from './budget-waits.ts';
import { type ClimbingStep, climb, openLadder, type RunInput } from './correct-step.ts';
import { type CallExecution, executeCall } from './execute-call.ts';
import { resumeReviewed } from './follow-decision.ts';
import { type LocalContext, stepOf } from './local-context.ts';
import type { UnitName, UnitRecord } from './run-journal.ts';
import { cancelledEnd, keyOfUnit, type UnitResults } from './unit-results.ts';

export type Executed = UnitEnd | UnitWaiting | { readonly state: 'escalated' };

export interface CallUnits {
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
