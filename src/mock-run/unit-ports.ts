/**
 * One step, or one item of it, whatever its kind: makes it happen as far as it can, and answers an end or what it waits
 * for. Come again when the wait is over, it goes on where it was. All it answers is in the journal already.
 */
import type { JsonObject } from '../contracts/primitives.ts';
import { parseDuration } from '../core/duration.ts';
import type { RunPorts, Unit, UnitEnd } from '../core/run/drive.ts';
import { createCallUnits, type Executed } from './call-unit.ts';
import { type LocalContext, stepOf } from './local-context.ts';
import { createReviewUnits } from './review-unit.ts';
import type { UnitName, UnitRecord } from './run-journal.ts';
import { evaluate } from './step-scope.ts';
import { createSubRunUnits } from './sub-run-unit.ts';
import { cancelledEnd, createUnitResults } from './unit-results.ts';

export type UnitPorts = Pick<RunPorts, 'executeStep' | 'escalateStep' | 'resumeStep' | 'giveUpStep'>;

function nameOf({ step, item }: Unit): UnitName {
  return { id: step.id, item };
}

export function createUnitPorts(context: LocalContext): UnitPorts {
  const { journal, scope, world } = context;
  const results = createUnitResults(journal);
  const calls = createCallUnits(context, results);
  const subRuns = createSubRunUnits(context, results);
  const askPerson = createReviewUnits(context, results);

  const pause = (unit: UnitRecord): Executed => {
    const { wait = '0s' } = stepOf(context, unit.id).definition;
    const until = (unit.startedAt ?? 0) + parseDuration(wait);
    if (world.time.now() >= until) return results.succeed(unit, null);
    return results.wait(unit, { awaiting: 'time', until, ref: null });
  };

  const execute = async (planned: Unit): Promise<Executed> => {
    const unit = journal.open(nameOf(planned));
    const { kind, input } = stepOf(context, unit.id);
    if (kind === 'wait') return pause(unit);
    const resolved = evaluate(input, scope, journal, unit);
    if ('error' in resolved) return results.end(unit, { state: 'failed', error: resolved.error });
    const value = resolved.value as JsonObject;
    switch (kind) {
      case 'call':
        return calls.execute(unit, value, planned.step.escalates === true);
      case 'run':
        return subRuns.execute(unit, value);
      case 'review':
        return askPerson(unit);
    }
  };

  return {
    executeStep: execute,
    escalateStep: (planned) => calls.climb(nameOf(planned)),
    resumeStep: (planned, { ladder }) => (ladder === true ? calls.follow(nameOf(planned)) : execute(planned)),
    giveUpStep: async (planned): Promise<UnitEnd> => {
      const unit = nameOf(planned);
      subRuns.cancel(unit);
      const error = calls.failureOf(unit);
      return results.end(
        unit,
        context.isCancelled() || error === undefined ? cancelledEnd : { state: 'failed', error },
      );
    },
  };
}
