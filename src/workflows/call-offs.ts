/**
 * Units that are called off while they are in flight, because the race that they are in is decided. The end of a unit
 * is stored first, so that the process that makes its call can see it; then its activity, or its ladder, is cancelled.
 */
import type { Failure } from '@capstan/core/contracts/primitives';
import type { Unit } from '@capstan/core/run/drive';
import { nameUnit } from '@capstan/core/workflow-names';
import { CancellationScope } from '@temporalio/workflow';
import type { ProgressRecorder } from './progress-recorder.ts';

export interface CallOffs {
  /** Runs the work of a unit in a scope of its own if it may be called off; else in that of all. */
  within<Result>(unit: Unit, all: CancellationScope, work: () => Promise<Result>): Promise<Result>;
  callOff(unit: Unit, why: Failure): void;
  /** Notes that a unit which waits is called off. */
  note(unit: Unit, why: Failure): void;
  /** Undefined: it is still wanted. */
  whyOf(unit: Unit): Failure | undefined;
}

export function createCallOffs(recorder: Pick<ProgressRecorder, 'record'>): CallOffs {
  const scopes = new Map<string, CancellationScope>();
  const reasons = new Map<string, Failure>();
  const nameOf = ({ step, item }: Unit): string => nameUnit(step.id, item);
  return {
    within: (unit, all, work) => {
      if (unit.step.is_callable_off !== true) return all.run(work);
      const name = nameOf(unit);
      const scope = new CancellationScope({ cancellable: true, parent: all });
      scopes.set(name, scope);
      if (reasons.has(name)) scope.cancel();
      const working = scope.run(work);
      const over = (): void => void scopes.delete(name);
      working.then(over, over);
      return working;
    },
    callOff: (unit, error) => {
      const name = nameOf(unit);
      const { step, item } = unit;
      reasons.set(name, error);
      void recorder
        .record([{ step_id: step.id, item, state: 'cancelled', error }])
        .then(() => scopes.get(name)?.cancel());
    },
    note: (unit, why) => void reasons.set(nameOf(unit), why),
    whyOf: (unit) => reasons.get(nameOf(unit)),
  };
}
