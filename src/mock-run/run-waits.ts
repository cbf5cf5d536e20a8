/** Who waits for what in a local run; a call that comes before anybody waits for it is remembered. */
import type { Wait } from '../core/run/wait.ts';
import type { UnitName } from './run-journal.ts';
import { keyOfUnit } from './unit-results.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface RunWaits {
  /** What the unit waits for is there. */
  wake(unit: UnitName): void;
  listen(unit: UnitName, wait: Wait): void;
}

/** @param tell that the wait is over */
export function createRunWaits({ at }: VirtualTime, tell: (unit: UnitName) => void): RunWaits {
  const listening = new Map<string, () => void>();
  const early = new Set<string>();

  const wake: RunWaits['wake'] = (unit) => {
    const key = keyOfUnit(unit);
    const undo = listening.get(key);
    if (undo === undefined) {
      early.add(key);
      return;
    }
    undo();
    listening.delete(key);
    tell(unit);
  };

  return {
    wake,
    listen: (unit, { until }) => {
      const key = keyOfUnit(unit);
      listening.get(key)?.();
      listening.set(key, until === null ? () => undefined : at(until, () => wake(unit)));
      if (early.delete(key)) void Promise.resolve().then(() => wake(unit));
    },
  };
}
