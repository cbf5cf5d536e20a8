/** One timer for many deadlines, that of the earliest. */
import { CancellationScope, sleep } from '@temporalio/workflow';

export interface EarliestTimer {
  /** Makes the timer fire at `until`, or before; null = never. @param summary what the timer is called in Temporal */
  arm(until: number | null, summary: string): void;
  stop(): void;
}

/** @param fire may come early, for a deadline that nobody has any more; whoever waits then arms it again */
export function createEarliestTimer(scope: CancellationScope, fire: () => void): EarliestTimer {
  let armed: { readonly at: number; readonly scope: CancellationScope } | null = null;
  const stop = (): void => {
    armed?.scope.cancel();
    armed = null;
  };
  return {
    arm: (until, summary) => {
      if (until === null || (armed !== null && armed.at <= until)) return;
      armed?.scope.cancel();
      const own = new CancellationScope({ cancellable: true, parent: scope });
      own
        .run(() => sleep(Math.max(1, until - Date.now()), { summary }))
        .then(
          () => {
            armed = null;
            fire();
          },
          () => undefined,
        );
      armed = { at: until, scope: own };
    },
    stop,
  };
}
