/** The scenarios with long parameters, and how their calls have to end. */
import { doWithoutMoney } from '../../test/scenarios/do-without-money.ts';
import { breakFreeInstance, killFreeInstance } from '../../test/scenarios/lose-the-free-instance.ts';
import type { Outcome } from '../../test/scenarios/outcome.ts';
import { raceForMoney } from '../../test/scenarios/race-for-money.ts';
import { reviveEvictedInstance } from '../../test/scenarios/revive-an-evicted-instance.ts';
import { shareIdleInstance } from '../../test/scenarios/share-an-idle-instance.ts';
import { spendLimit } from '../../test/scenarios/spend-a-limit.ts';
import type { Stage } from '../../test/scenarios/stage.ts';

interface Played {
  readonly outcome: Outcome;
  /** What happened that must not; none is good. */
  readonly faults: readonly string[];
}

type Act = (stage: Stage) => Promise<Played>;

function allSucceeded({ ends }: Outcome): string[] {
  const { succeeded: _, ...others } = ends;
  return Object.entries(others).map(([end, count]) => `${count} calls ended as ${end}`);
}

/** Calls that a race gets through in a second, roughly: sets how long it takes. */
const racedPerSecond = 60;

export function createActs(raceMs: number): readonly (readonly [name: string, act: Act])[] {
  const raced = Math.round((raceMs / 1_000) * racedPerSecond);
  return [
    [
      'spend a limit',
      async (stage) => {
        const outcome = await spendLimit(stage, { calls: 4_000, units: 1_000 });
        const { succeeded = 0 } = outcome.ends;
        return { outcome, faults: succeeded === 1_000 ? [] : [`${succeeded} succeeded, 1000 should have`] };
      },
    ],
    [
      'share an idle instance',
      async (stage) => {
        const outcome = await shareIdleInstance(stage, { calls: 400 });
        return { outcome, faults: allSucceeded(outcome) };
      },
    ],
    [
      'kill the free instance',
      async (stage) => {
        const outcome = await killFreeInstance(stage, { times: 10 });
        return { outcome, faults: allSucceeded(outcome) };
      },
    ],
    [
      'break the free instance',
      async (stage) => {
        const outcome = await breakFreeInstance(stage);
        const faults = outcome.trials > 0 ? [] : ['it came back without a trial'];
        return { outcome, faults: [...faults, ...allSucceeded(outcome)] };
      },
    ],
    [
      'do without money',
      async (stage) => {
        const outcome = await doWithoutMoney(stage, { calls: 2_000 });
        return { outcome, faults: allSucceeded(outcome) };
      },
    ],
    [
      'revive an evicted instance',
      async (stage) => {
        const outcome = await reviveEvictedInstance(stage);
        const faults = outcome.afterMs <= 2_000 ? [] : [`called ${Math.round(outcome.afterMs)} ms later`];
        return { outcome, faults };
      },
    ],
    [
      'race for money',
      async (stage) => {
        const quiet = { cancelledShare: 0, unansweredShare: 0, killEvery: null };
        const outcome = await raceForMoney(stage, { calls: raced, limitUsd: raced * 0.01, ...quiet });
        return { outcome, faults: [] };
      },
    ],
    [
      'race, cancelled, unanswered, killed',
      async (stage) => {
        const wild = { cancelledShare: 0.1, unansweredShare: 0.1, killEvery: 450 };
        const outcome = await raceForMoney(stage, { calls: raced, limitUsd: raced * 0.018, ...wild });
        return { outcome, faults: [] };
      },
    ],
  ];
}
