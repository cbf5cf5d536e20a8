/** A step that is a call: the call itself, its ladder when the input is refused, and its waits. */
import type { JsonObject } from '../contracts/primitives.ts';
import { capabilityOf } from '../definition/step-settings.ts';
import { isCorrectable } from '../ladder/classify-failure.ts';
import type { UnitEnd, UnitResult, UnitWaiting } from '../run/drive.ts';
import { openLadder } from './correct-step.ts';
import { type CallExecution, executeCall } from './execute-call.ts';
import { type LocalRun, stepOf, stopOf, type UnitRecord } from './local-run.ts';
import { type MockDecision, MockFault } from './mocks.ts';
import { endUnit, logEvent, settleUnit, wakeUnit } from './run-journal.ts';

export async function executeCallUnit(
  run: LocalRun,
  unit: UnitRecord,
  { input, escalates }: { readonly input: JsonObject; readonly escalates: boolean },
): Promise<UnitResult> {
  if (endBudgetWait(run, unit)) return endUnit(run, unit, { state: 'skipped' });
  const step = stepOf(run, unit.id);
  const done = await executeCall(run, unit, { step, input, stop: stopOf(unit, run.stop), mayWait: true });
  if (!escalates || done.state !== 'failed' || !isCorrectable(done.error.code))
    return finish(run, unit, done);
  const failure = done.error;
  unit.ladder = openLadder(run, { unit, step, input, failure });
  logEvent(run, { type: 'step.escalated', unit, data: { error: { ...failure } } });
  return { state: 'escalated' };
}

function finish(run: LocalRun, unit: UnitRecord, ended: CallExecution): UnitEnd | UnitWaiting {
  if (ended.state === 'waiting') {
    const { awaiting } = ended.wait;
    if (awaiting === 'retry') return ended; // its row shows it
    if (awaiting === 'budget') beginBudgetWait(run, unit);
    if (awaiting === 'capability') wakeAtRegistration(run, unit);
  }
  return settleUnit(run, unit, ended);
}

function wakeAtRegistration(run: LocalRun, unit: UnitRecord): void {
  const { fleet, time } = run.world;
  const moment = fleet.nextRegistration(capabilityOf(stepOf(run, unit.id).definition));
  if (moment !== null) time.at(moment, () => wakeUnit(run, unit));
}

// Steps that find no budget left wait for it; one review covers all of them.

function beginBudgetWait(run: LocalRun, unit: UnitRecord): void {
  const { budgetWait, world } = run;
  budgetWait.units.add(unit);
  budgetWait.review ??= world.reviewer.open({ kind: 'budget', step: null }, null, () => decideMoney(run));
}

/** Ends the unit's wait. @returns whether a person has skipped it */
function endBudgetWait({ budgetWait }: LocalRun, unit: UnitRecord): boolean {
  budgetWait.units.delete(unit);
  const { isSkipped } = unit;
  unit.isSkipped = false;
  return isSkipped;
}

/** Closes the budget review after a raise of the ceiling. */
export function noteRaise(run: LocalRun): void {
  run.budgetWait.review = null;
  wakeAll(run);
}

function wakeAll(run: LocalRun): void {
  for (const unit of run.budgetWait.units) wakeUnit(run, unit);
}

function decideMoney(run: LocalRun): void {
  const decision = run.budgetWait.review?.decision ?? null;
  run.budgetWait.review = null;
  if (decision !== null) followMoney(run, decision);
}

function followMoney(run: LocalRun, { action, budget_ceiling_usd }: MockDecision): void {
  switch (action) {
    case 'raise':
      run.budget.scarce().raise(budget_ceiling_usd ?? null);
      break;
    case 'skip':
      for (const unit of run.budgetWait.units) {
        if (stepOf(run, unit.id).definition.optional === true) unit.isSkipped = true;
      }
      wakeAll(run);
      break;
    case 'cancel':
      run.driven?.send({ type: 'cancel_requested' });
      break;
    default:
      throw new MockFault(`a review of the budget takes raise, skip or cancel, not ${action}`);
  }
}
