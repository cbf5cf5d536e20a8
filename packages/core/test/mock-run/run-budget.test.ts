import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { createRunBudget, type RunBudget } from '../../src/mock-run/local-run.ts';
import { fromNanoUsd } from '../../src/money/nano-usd.ts';
import { type Settlement, settle } from '../../src/money/reservation.ts';
import { reservationOf } from '../../src/routing/estimate.ts';
import { anInstance } from '../routing/a-snapshot.ts';

/** Nano-USD, so few that calls meet the limits. */
const nano = fc.integer({ min: 0, max: 1_000 });
const usd = (amount: number) => fromNanoUsd(BigInt(amount));

/** A call: its price by the rate, the worst case that its instance declares, and how it ends. */
const aCall = fc.record({
  kind: fc.constant('call' as const),
  cost_type: fc.constantFrom('per_call' as const, 'per_second' as const),
  rate: nano,
  worst: fc.integer({ min: 0, max: 100 }),
  reported: fc.option(nano),
  durationMs: fc.integer({ min: 0, max: 2_000 }),
  settlement: fc.constantFrom<Settlement>('answered', 'answered', 'failed', 'not_sent', 'lost'),
  isBelow: fc.boolean(),
});
type Call = typeof aCall extends fc.Arbitrary<infer Value> ? Value : never;
const anEnd = fc.record({ kind: fc.constant('end' as const), which: fc.nat() });

interface OpenCall {
  readonly budget: RunBudget;
  readonly reserved: bigint;
  readonly risk: bigint;
  readonly amount: bigint;
}

/** Null where the budget refuses the call. */
function begin({ cost_type, rate, worst, reported, ...call }: Call, budget: RunBudget): OpenCall | null {
  const instance = anInstance('a', { cost_type, rate_usd: usd(rate) });
  const bounds = new Map([['a', { worstUsd: Math.max(1e-9, usd(worst)), expectedUsd: null }]]);
  const { reserved, risk } = reservationOf(instance, { ceilingUsd: null, timeoutMs: 1_000, bounds }, 0);
  if (budget.reserve(reserved, risk) !== null) return null;
  const reportedUsd = reported === null ? null : usd(reported);
  const facts = { durationMs: call.durationMs, reserved, risk, reports: reported !== null, reportedUsd };
  return { budget, reserved, risk, amount: settle(instance, call.settlement, facts).amount };
}

function end({ budget, reserved, risk, amount }: OpenCall): void {
  budget.settle(reserved + risk, amount);
}

it('calls in any order take a budget above its limit by the risk of one at most, whatever they cost', () => {
  fc.assert(
    fc.property(
      nano,
      nano,
      fc.array(fc.oneof(aCall, anEnd), { maxLength: 60 }),
      (limit, limitBelow, acts) => {
        const above = createRunBudget(usd(limit), null);
        const below = createRunBudget(usd(limitBelow), above);
        const open: OpenCall[] = [];
        let highest = 0n;
        for (const act of acts) {
          if (act.kind === 'end')
            for (const call of open.splice(act.which % (open.length || 1), 1)) end(call);
          const call = act.kind === 'call' ? begin(act, act.isBelow ? below : above) : null;
          if (call === null) continue;
          open.push(call);
          if (call.risk > highest) highest = call.risk;
        }
        for (const call of open) end(call);
        expect(above.spentNano() <= BigInt(limit) + highest).toBe(true);
        expect(below.spentNano() <= BigInt(limitBelow) + highest).toBe(true);
      },
    ),
    { numRuns: runs(300) },
  );
});
