import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type CallPorts, driveCall, driveLongCall, judgeSent } from '../../src/call/drive-call.ts';
import type { CallOutcome } from '../../src/call/outcome.ts';
import type { RetrySettings } from '../../src/call/retry.ts';
import { maxInstances, shortestWaitMs } from '../../src/call/retry.ts';
import type { CallInBatch, ClaimEnd, ClaimedCall, RoutedCall } from '../../src/call/types.ts';
import { CancelSource } from '../../src/cancellation.ts';
import type { Decision } from '../../src/contracts/decision.ts';
import { worstCase } from '../../src/money/reservation.ts';
import { enforcedTimeout } from '../../src/routing/estimate.ts';
import { anInstance } from '../routing/a-snapshot.ts';

const retry: RetrySettings = { max: 3, initialMs: 1_000, factor: 2, maxDelayMs: 60_000 };
const decision = { decision_id: 'dec', reason: 'it is the best' } as unknown as Decision;

function aCall(part: Partial<RoutedCall> = {}, route: Partial<RoutedCall['route']> = {}): RoutedCall {
  return {
    route: {
      capability: 'echo',
      versionRange: null,
      tags: [],
      priority: 'standard',
      ceilingUsd: null,
      timeoutMs: 10_000,
      ...route,
    },
    retry,
    round: 1,
    signal: new CancelSource(),
    ...part,
  };
}

/** What one claim after the other finds, and how its request ends. */
interface Turn {
  readonly outcome: CallOutcome;
  readonly durationMs?: number;
  readonly rateUsd?: number;
  readonly isClosed?: boolean;
  /** Costs the amount of its output. */
  readonly isReported?: boolean;
  /** A closed connection ends the work of its instance. */
  readonly stops?: boolean;
}

const nobody = {
  kind: 'none',
  decision,
  error: { code: 'no_instance', message: 'nobody is there' },
  isFinal: false,
  retryAfterMs: shortestWaitMs,
} as const;

interface Beyond {
  /** Failures of the key that were counted before. */
  readonly counted?: number;
  /** What a claim finds after the last turn. */
  readonly after?: ClaimEnd<ClaimedCall>;
}

/** Ports that play the turns, then find no instance; everything that is asked of them is written down. */
function aStage(turns: readonly Turn[], { counted = 0, after = nobody }: Beyond = {}) {
  let now = 0;
  const asked: { ceilingUsd: number | null; timeoutMs: number; tried: string[] }[] = [];
  const sent: string[] = [];
  const settled: { id: string; amount: bigint; reserved: bigint; counted: number; durationMs: number }[] = [];
  let held = 0;
  const turnOf = ({ instance }: ClaimedCall): Turn => turns[Number(instance.instance_id)] as Turn;
  const ports: CallPorts<RoutedCall, ClaimedCall> = {
    claim: async ({ route }, tried) => {
      const { ceilingUsd, timeoutMs } = route;
      const turn = turns[asked.length];
      const id = String(asked.length);
      asked.push({ ceilingUsd, timeoutMs, tried: [...tried] });
      if (turn === undefined) return after;
      const settle = turn.isReported === true ? 'reported' : 'computed';
      const { rateUsd: rate_usd = 0, stops = false } = turn;
      const instance = anInstance(id, { cost_type: 'per_second', rate_usd, settle, stops });
      const mostMs = enforcedTimeout(instance, route);
      const reserved = worstCase(instance, mostMs);
      return {
        kind: 'claimed',
        instance,
        number: 1,
        counted,
        timeoutMs: mostMs,
        reserved,
        risk: 0n,
        decision,
      };
    },
    hold: () => {
      held += 1;
      return () => {
        held -= 1;
      };
    },
    deliver: async (_, claimed) => {
      const turn = turnOf(claimed);
      const durationMs = Math.min(turn.durationMs ?? 1, claimed.timeoutMs);
      sent.push(claimed.instance.instance_id);
      now += durationMs;
      return { outcome: turn.outcome, durationMs };
    },
    settle: async (_, claimed, { delivery: { amount, counted, durationMs } }) => {
      expect(held).toBe(1);
      const { instance, reserved } = claimed;
      settled.push({ id: instance.instance_id, amount, reserved, counted, durationMs });
      return turnOf(claimed).isClosed !== true;
    },
    transientTexts: ['rate limit'],
    nowMs: () => now,
    random: () => 0.5,
  };
  return { ports, asked, sent, settled, heldNow: () => held, nowMs: () => now };
}

const answered: CallOutcome = { kind: 'answered', body: { n: 1 } };
const wrong: CallOutcome = { kind: 'output_invalid', message: '/n is missing' };
const broken: CallOutcome = { kind: 'failed', status: 500, message: 'out of memory' };
const lost: CallOutcome = { kind: 'lost', message: 'the connection broke' };

const anyOutcome: fc.Arbitrary<CallOutcome> = fc.constantFrom<CallOutcome>(
  answered,
  broken,
  lost,
  { kind: 'rejected', status: 422, message: 'no' },
  { kind: 'overloaded', status: 429, retryAfterMs: 90_000 },
  { kind: 'not_sent', message: 'nobody listens' },
  { kind: 'timeout', timeoutMs: 5 },
  { kind: 'malformed', message: 'a list' },
  { kind: 'cancelled' },
  { kind: 'abandoned' },
  { kind: 'unsent' },
);
const anyTurns = fc.array(
  fc.record({
    outcome: anyOutcome,
    durationMs: fc.integer({ min: 0, max: 8_000 }),
    rateUsd: fc.constantFrom(0, 0.001, 0.37),
  }),
  { maxLength: 6 },
);

it('C1: tries at most three instances, none of them twice', async () => {
  await fc.assert(
    fc.asyncProperty(anyTurns, async (turns) => {
      const stage = aStage(turns);
      await driveCall(stage.ports, aCall());
      expect(stage.settled.length).toBeLessThanOrEqual(maxInstances);
      for (const [at, { tried }] of stage.asked.entries()) {
        expect(tried).toEqual(stage.settled.slice(0, at).map(({ id }) => id));
      }
    }),
  );
});

it('C2: all attempts together stay within one ceiling and one deadline', async () => {
  await fc.assert(
    fc.asyncProperty(anyTurns, fc.constantFrom(0, 0.01, 0.5, 1), async (turns, ceilingUsd) => {
      const stage = aStage(turns);
      await driveCall(stage.ports, aCall({}, { ceilingUsd }));
      const spent = stage.settled.reduce((sum, { amount }) => sum + amount, 0n);
      // An enforced timeout is a whole millisecond at least, so a ceiling of nothing buys one of each.
      const grain = BigInt(Math.ceil(0.37 * 1e6)) * BigInt(maxInstances);
      expect(spent <= BigInt(Math.round(ceilingUsd * 1e9)) + grain).toBe(true);
      expect(stage.nowMs()).toBeLessThanOrEqual(10_000);
      for (const { timeoutMs } of stage.asked) expect(timeoutMs).toBeLessThanOrEqual(10_000);
    }),
  );
});

it('C3: settles exactly once whatever it claimed, and holds nothing afterwards', async () => {
  await fc.assert(
    fc.asyncProperty(anyTurns, async (turns) => {
      const stage = aStage(turns);
      await driveCall(stage.ports, aCall());
      const ids = stage.settled.map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids).toEqual(stage.sent);
      for (const { amount, reserved } of stage.settled) expect(amount <= reserved).toBe(true);
      expect(stage.heldNow()).toBe(0);
    }),
  );
});

it('C3: lets go of the claim when it cannot be settled', async () => {
  const stage = aStage([{ outcome: answered }]);
  const ports = { ...stage.ports, settle: () => Promise.reject(new Error('no database')) };
  await expect(driveCall(ports, aCall())).rejects.toThrow('no database');
  expect(stage.heldNow()).toBe(0);
});

it('C4: settles without sending what earlier attempts have used up', async () => {
  const stage = aStage([{ outcome: answered }], { counted: 4 });
  const end = await driveCall(stage.ports, aCall());
  expect(end).toMatchObject({ kind: 'failed', isRecorded: true, error: { code: 'contact_lost' } });
  expect(stage.sent).toEqual([]);
  expect(stage.settled).toMatchObject([{ counted: 4, durationMs: 0 }]);
});

it('C5: hands back what time may cure, spaced by its round when nothing was counted', async () => {
  const delays = [1, 2, 3].map(async (round) => {
    const end = await driveCall(aStage([]).ports, aCall({ round }));
    return end.kind === 'retry' ? end.delayMs : null;
  });
  expect(await Promise.all(delays)).toEqual([500, 800, 1_280]);
});

it('C9: begins no further attempt while its owner holds it, and asks only after a failure', async () => {
  await fc.assert(
    fc.asyncProperty(anyTurns, fc.integer({ min: 0, max: 3 }), async (turns, heldFrom) => {
      const [free, stage] = [aStage(turns), aStage(turns)];
      const freely = await driveCall(free.ports, aCall());
      let asked = 0;
      const isHeld = async () => {
        asked += 1;
        expect(stage.sent).toHaveLength(asked);
        return asked > heldFrom;
      };
      const end = await driveCall(stage.ports, aCall({ isHeld }));
      const isCut = free.asked.length > heldFrom + 1;
      expect(stage.asked.length).toBe(isCut ? heldFrom + 1 : free.asked.length);
      if (isCut) expect(end).toMatchObject({ kind: 'retry' });
      else expect(end).toEqual(freely);
    }),
  );
});

it('C10: asks again at once and on any instance, with the fault, and without counting', async () => {
  const rejected = {
    kind: 'rejected',
    status: 422,
    message: 'no JSON',
    errorCode: 'model_answer_invalid',
  } as const;
  const stage = aStage([{ outcome: wrong }, { outcome: rejected }, { outcome: answered }], { counted: 3 });
  const told: unknown[] = [];
  const deliver: typeof stage.ports.deliver = async (request, ...others) => {
    told.push(request.wrong);
    return stage.ports.deliver(request, ...others);
  };
  const call = aCall({ retry: { ...retry, invalidOutput: 2 } });
  expect(await driveCall({ ...stage.ports, deliver }, call)).toMatchObject({ kind: 'succeeded' });
  expect(stage.asked.map(({ tried }) => tried)).toEqual([[], [], []]);
  expect(stage.settled.map(({ counted }) => counted)).toEqual([3, 3, 3]);
  expect(told).toEqual([
    undefined,
    { count: 1, fault: { code: 'output_invalid', message: '/n is missing' } },
    { count: 2, fault: { code: 'model_answer_invalid', message: 'no JSON' } },
  ]);
});

it('C10: asks as often as the policy allows, over all rounds, and then ends with the fault', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(6), fc.nat(6), async (invalidOutput, before) => {
      const stage = aStage(Array.from({ length: 9 }, () => ({ outcome: wrong })));
      const claim: typeof stage.ports.claim = async (...given) => {
        const claimed = await stage.ports.claim(...given);
        const isFirst = stage.asked.length === 1;
        const known = isFirst && before > 0 ? { wrong: { count: before, fault: null } } : {};
        return claimed.kind === 'claimed' ? { ...claimed, ...known } : claimed;
      };
      const call = aCall({ retry: { ...retry, invalidOutput } });
      const end = await driveCall({ ...stage.ports, claim }, call);
      expect(end).toMatchObject({ kind: 'failed', isRecorded: true, error: { code: 'output_invalid' } });
      expect(stage.sent).toHaveLength(1 + Math.max(0, invalidOutput - before));
    }),
  );
});

it('C10: ends with the fault when the ceiling has no room, waits for what may come, keeps to the time', async () => {
  const call = aCall({ retry: { ...retry, invalidOutput: 9 } }, { ceilingUsd: 1 });
  const error = { code: 'ceiling_too_low', message: 'the cheapest costs more' } as const;
  const poor = aStage([{ outcome: wrong, rateUsd: 0.6, durationMs: 1_000 }], {
    after: { ...nobody, error, isFinal: true },
  });
  expect(await driveCall(poor.ports, call)).toMatchObject({
    kind: 'failed',
    isRecorded: false,
    error: { code: 'output_invalid', message: '/n is missing' },
  });
  expect(poor.asked.map(({ ceilingUsd }) => ceilingUsd)).toEqual([1, 0.4]);
  const alone = aStage([{ outcome: wrong }]);
  expect(await driveCall(alone.ports, call)).toMatchObject({ kind: 'retry', delayMs: 500 });
  const slow = aStage([{ outcome: wrong, durationMs: 10_000 }, { outcome: answered }]);
  expect(await driveCall(slow.ports, call)).toMatchObject({
    kind: 'retry',
    error: { code: 'output_invalid' },
  });
  expect(slow.sent).toEqual(['0']);
});

it('C10: what another instance failed after it is not asked again in this call', async () => {
  const stage = aStage([{ outcome: broken }, { outcome: wrong }, { outcome: answered }]);
  await driveCall(stage.ports, aCall({ retry: { ...retry, invalidOutput: 1 } }));
  expect(stage.asked.map(({ tried }) => tried)).toEqual([[], ['0'], ['0']]);
});

it('C8: nothing is asked for again once a part of the result was passed on', async () => {
  const stage = aStage([{ outcome: wrong }, { outcome: answered }]);
  const call = aCall({ retry: { ...retry, invalidOutput: 1 }, hasPassedOn: () => true });
  expect(await driveCall(stage.ports, call)).toMatchObject({ kind: 'retry' });
  expect(stage.sent).toEqual(['0']);
});

it('C5: fails for good when waiting cannot help', async () => {
  const error = { code: 'ceiling_too_low', message: 'the cheapest costs more' } as const;
  const after = { ...nobody, error, isFinal: true };
  const end = await driveCall(aStage([], { after }).ports, aCall());
  expect(end).toEqual({ kind: 'failed', error, isRecorded: false, decision });
});

const late: CallOutcome = { kind: 'timeout', timeoutMs: 10_000 };

it('C6: sends what was lost or came too late elsewhere at once, each with the time of one attempt', async () => {
  const durationMs = 10_000;
  const stage = aStage([
    { outcome: late, durationMs },
    { outcome: lost, durationMs: 3 },
    { outcome: late, durationMs },
    { outcome: answered },
  ]);
  const end = await driveCall(stage.ports, aCall({ resendsWithinMs: 25_000 }));
  expect(end).toMatchObject({ kind: 'succeeded', output: { n: 1 } });
  expect(stage.asked.map(({ timeoutMs, tried }) => [timeoutMs, tried.length])).toEqual([
    [10_000, 0],
    [10_000, 1],
    [10_000, 2],
    [4_997, 3],
  ]);
});

it('C6: pauses only when no other is left, and no longer sends when the retries or the time are used up', async () => {
  const alone = aStage([{ outcome: lost }], { counted: 1 });
  const pause = await driveCall(alone.ports, aCall({ resendsWithinMs: 60_000 }));
  expect(pause).toMatchObject({ kind: 'retry', delayMs: 2_000, error: { code: 'contact_lost' } });
  const last = aStage([{ outcome: lost }, { outcome: answered }], { counted: 3 });
  const end = await driveCall(last.ports, aCall({ resendsWithinMs: 60_000 }));
  expect(end).toMatchObject({ kind: 'failed', error: { code: 'contact_lost' } });
  const over = aStage([{ outcome: late, durationMs: 10_000 }, { outcome: answered }]);
  await driveCall(over.ports, aCall({ resendsWithinMs: 10_000 }));
  expect([last.sent, over.sent]).toEqual([['0'], ['0']]);
});

it('C6: nothing that is to be sent at most once, or that this process gave up, goes elsewhere', async () => {
  const once = aStage([{ outcome: lost }, { outcome: answered }]);
  const request = aCall({ resendsWithinMs: 60_000, retry: { ...retry, max: 0 } });
  expect(await driveCall(once.ports, request)).toMatchObject({ kind: 'unknown' });
  const stopped = aStage([{ outcome: { kind: 'abandoned' } }, { outcome: answered }]);
  expect(await driveCall(stopped.ports, aCall({ resendsWithinMs: 60_000 }))).toMatchObject({ kind: 'retry' });
  expect([once.sent, stopped.sent]).toEqual([['0'], ['0']]);
});

it('continues elsewhere after a fault of the instance, and reports the attempt that succeeded', async () => {
  const stage = aStage([{ outcome: broken }, { outcome: answered, durationMs: 7 }]);
  expect(await driveCall(stage.ports, aCall())).toEqual({
    kind: 'succeeded',
    output: { n: 1 },
    attempt: {
      number: 1,
      endpoint: anInstance('1').endpoint,
      cost_usd: 0,
      duration_ms: 7,
      decision: { ...decision, settled_usd: 0 },
    },
  });
});

it('leaves it to the owner whether what may have worked is sent again', async () => {
  const stage = aStage([{ outcome: lost }, { outcome: answered }]);
  const end = await driveCall(stage.ports, aCall());
  expect(end).toMatchObject({ kind: 'retry', delayMs: 1_000, error: { code: 'contact_lost' } });
  expect(stage.sent).toEqual(['0']);
});

it('comes back as late as the instance asks, within bounds', async () => {
  const busy = { kind: 'overloaded', status: 429, retryAfterMs: 3_600_000 } as const;
  const stage = aStage([{ outcome: busy }]);
  expect(await driveCall(stage.ports, aCall())).toMatchObject({
    kind: 'retry',
    delayMs: 60_000,
  });
});

it('ends as closed when its end is not accepted', async () => {
  const stage = aStage([{ outcome: answered, isClosed: true }]);
  expect(await driveCall(stage.ports, aCall())).toEqual({ kind: 'closed' });
});

it('takes the answer that an earlier attempt was given', async () => {
  const after = { kind: 'answered', output: 7 } as const;
  const stage = aStage([], { after });
  expect(await driveCall(stage.ports, aCall())).toEqual({ kind: 'succeeded', output: 7, attempt: null });
});

it('ends as cancelled rather than coming back', async () => {
  const signal = new CancelSource();
  signal.abort('cancelled');
  expect(await driveCall(aStage([]).ports, aCall({ signal }))).toEqual({ kind: 'cancelled' });
});

it('C2: ceiling and time shrink by the share of each attempt', async () => {
  const stage = aStage([
    { outcome: broken, durationMs: 1_000, rateUsd: 0.1 },
    { outcome: broken, durationMs: 2_000, rateUsd: 0.2 },
    { outcome: answered },
  ]);
  await driveCall(stage.ports, aCall({}, { ceilingUsd: 2 }));
  expect(stage.asked.map(({ ceilingUsd, timeoutMs }) => [ceilingUsd, timeoutMs])).toEqual([
    [2, 10_000],
    [1.9, 9_000],
    [1.5, 7_000],
  ]);
});

it('C2: no attempt begins when the time is over, and what is left is a whole millisecond at least', async () => {
  const over = aStage([{ outcome: broken, durationMs: 10_000 }, { outcome: answered }]);
  expect(await driveCall(over.ports, aCall())).toMatchObject({ kind: 'retry' });
  expect(over.sent).toEqual(['0']);
  const almost = aStage([{ outcome: broken, durationMs: 9_999.5 }, { outcome: answered }]);
  await driveCall(almost.ports, aCall());
  expect(almost.asked.map(({ timeoutMs }) => timeoutMs)).toEqual([10_000, 1]);
  const early = aStage([{ outcome: broken, durationMs: 7_999.5 }, { outcome: answered }]);
  await driveCall(early.ports, aCall());
  expect(early.asked.map(({ timeoutMs }) => timeoutMs)).toEqual([10_000, 2_001]);
});

it('C1: asks no fourth instance', async () => {
  const stage = aStage(Array.from({ length: 5 }, () => ({ outcome: broken })));
  await driveCall(stage.ports, aCall({ retry: { ...retry, max: 9 } }));
  expect(stage.sent).toEqual(['0', '1', '2']);
});

it('costs what an instance reports where that counts, up to what was reserved', async () => {
  const outcome: CallOutcome = { kind: 'answered', body: { cost_usd: 0.25 } };
  const costs = [true, false].map(async (isReported) => {
    const turn = { outcome, durationMs: 1_000, rateUsd: 0.1, isReported };
    const end = await driveCall(aStage([turn]).ports, aCall());
    return end.kind === 'succeeded' ? end.attempt?.cost_usd : null;
  });
  expect(await Promise.all(costs)).toEqual([0.25, 0.1]);
});

it('an attempt without a reported cost, or with a failure, costs its rate', async () => {
  const silent = aStage([{ outcome: answered, durationMs: 1_000, rateUsd: 0.1, isReported: true }]);
  const failing = aStage([{ outcome: broken, durationMs: 1_000, rateUsd: 0.1, isReported: true }]);
  await driveCall(silent.ports, aCall());
  await driveCall(failing.ports, aCall());
  expect([silent, failing].map(({ settled }) => settled[0]?.amount)).toEqual([100_000_000n, 100_000_000n]);
});

it('C7: reports a success before it is stored, and reports no other end', async () => {
  const told: unknown[] = [];
  const onAnswered = (end: unknown): void => {
    told.push(end);
  };
  const stage = aStage([{ outcome: answered }]);
  const settle: typeof stage.ports.settle = async (...given) => {
    told.push('settled');
    return stage.ports.settle(...given);
  };
  const end = await driveCall({ ...stage.ports, settle }, aCall({ batch: { stored: null, onAnswered } }));
  expect(told).toEqual([end, 'settled']);
  told.length = 0;
  await driveCall(
    aStage([{ outcome: { kind: 'rejected', status: 422, message: 'no' } }]).ports,
    aCall({ batch: { stored: null, onAnswered } }),
  );
  expect(told).toEqual([]);
});

/** Follows from an answer that is stored, or not. */
function afterAnswer(isStored: boolean): CallInBatch {
  return { stored: Promise.resolve(isStored), onAnswered: () => undefined };
}

it('C7: sends nothing that follows from an answer which was not stored, and pays nothing for it', async () => {
  const stage = aStage([{ outcome: answered, rateUsd: 1 }]);
  const end = await driveCall(stage.ports, aCall({ batch: afterAnswer(false) }));
  expect(end).toMatchObject({ kind: 'retry', error: { message: 'the call was stopped before it was sent' } });
  expect([stage.sent, stage.settled[0]?.amount]).toEqual([[], 0n]);
  const stored = aStage([{ outcome: answered }]);
  await driveCall(stored.ports, aCall({ batch: afterAnswer(true) }));
  expect(stored.sent).toEqual(['0']);
});

it('counts what failed and what was lost, not what was refused unread', async () => {
  const delays = ([broken, { kind: 'not_sent', message: 'nobody listens' }] as const).map(async (outcome) => {
    const stage = aStage([{ outcome }], { counted: 1 });
    const end = await driveCall(stage.ports, aCall({ round: 3 }));
    return [stage.settled[0]?.counted, end.kind === 'retry' ? end.delayMs : null];
  });
  expect(await Promise.all(delays)).toEqual([
    [2, 2_000],
    [1, 1_280],
  ]);
});

it('comes back no earlier than an instance asks, and as usual where it asks for no pause', async () => {
  const delays = [null, 5_000, 100].map(async (retryAfterMs) => {
    const stage = aStage([{ outcome: { kind: 'overloaded', status: 429, retryAfterMs } }]);
    const end = await driveCall(stage.ports, aCall());
    return end.kind === 'retry' ? end.delayMs : null;
  });
  expect(await Promise.all(delays)).toEqual([500, 5_000, 500]);
});

it('comes back at once where neither the retries nor the instance ask for a pause', async () => {
  const stage = aStage([{ outcome: lost }]);
  const end = await driveCall(stage.ports, aCall({ retry: { ...retry, initialMs: 0 } }));
  expect(end).toMatchObject({ kind: 'retry', delayMs: 0 });
});

it('ends as closed when the step has ended meanwhile', async () => {
  const stage = aStage([], { after: { kind: 'closed' } });
  expect(await driveCall(stage.ports, aCall())).toEqual({ kind: 'closed' });
});

it('ends as cancelled after an attempt that was running', async () => {
  const signal = new CancelSource();
  const stage = aStage([{ outcome: broken }]);
  const deliver: typeof stage.ports.deliver = (...given) => {
    signal.abort('cancelled');
    return stage.ports.deliver(...given);
  };
  expect(await driveCall({ ...stage.ports, deliver }, aCall({ signal }))).toEqual({ kind: 'cancelled' });
});

it.each([
  ['its time, on an instance that stops', true, 2_000],
  ['its whole reservation, on any other', false, 10_000],
])('pays of a cancelled call %s', async (_, stops, paidMs) => {
  const turn = { outcome: { kind: 'cancelled' }, durationMs: 2_000, rateUsd: 0.001, stops } as const;
  const stage = aStage([turn]);
  expect(await driveCall(stage.ports, aCall())).toEqual({ kind: 'cancelled' });
  expect(stage.settled.map(({ amount }) => amount)).toEqual([BigInt(paidMs * 1_000)]);
});

it('C3: ends a delivery when the call is cancelled or the claim is lost, and listens no longer than it lasts', async () => {
  const signal = new CancelSource();
  const reasons: unknown[] = [];
  let lose = (): void => undefined;
  const watch = async (end: () => void) => {
    const stage = aStage([{ outcome: answered }]);
    let seen: unknown;
    const ports: typeof stage.ports = {
      ...stage.ports,
      hold: (claimed, lost) => {
        lose = lost;
        return stage.ports.hold(claimed, lost);
      },
      deliver: async (request, claimed, source) => {
        seen = source;
        end();
        reasons.push([source.aborted, source.reason]);
        return stage.ports.deliver(request, claimed, source);
      },
    };
    await driveCall(ports, aCall({ signal }));
    return seen as CancelSource;
  };
  const first = await watch(() => undefined);
  await watch(() => lose());
  await watch(() => signal.abort('cancelled'));
  expect(reasons.map((reason) => (reason as [boolean])[0])).toEqual([false, true, true]);
  expect(first.aborted).toBe(false);
});

it('C8: goes to no other instance once a part of the result has been passed on', async () => {
  const turns = [{ outcome: broken }, { outcome: answered }];
  const before = aStage(turns);
  expect(await driveCall(before.ports, aCall({ hasPassedOn: () => false }))).toMatchObject({
    kind: 'succeeded',
  });
  const after = aStage(turns);
  const end = await driveCall(after.ports, aCall({ hasPassedOn: () => true, resendsWithinMs: 60_000 }));
  expect([end.kind, after.sent, after.settled.length]).toEqual(['retry', ['0'], 1]);
});

const later = { kind: 'later', until: new Date(0) } as const;

it('C11: neither settles nor renews a call whose instance answers later', async () => {
  const stage = aStage([{ outcome: answered }, { outcome: answered }]);
  const ports = { ...stage.ports, deliver: async () => later };
  expect(await driveLongCall(ports as never, aCall(), null)).toBe(later);
  expect([stage.settled, stage.heldNow()]).toEqual([[], 0]);
  await expect(driveCall(ports as never, aCall())).rejects.toThrow(
    'a call without an owner that continues it was left to its instance',
  );
});

it('C11: continues with the claim that it has, and claims again only after it', async () => {
  const first = aStage([{ outcome: broken }, { outcome: answered }]);
  const adopted = await first.ports.claim(aCall(), new Set());
  expect(await driveLongCall(first.ports, aCall(), adopted as ClaimedCall)).toMatchObject({
    kind: 'succeeded',
  });
  expect(first.sent).toEqual(['0', '1']);
  expect(first.asked.map(({ tried }) => tried)).toEqual([[], ['0']]);
});

it('C2: a wait for a slot counts against no deadline, and is reported', async () => {
  let now = 0;
  const stage = aStage([{ outcome: broken, durationMs: 3_000 }]);
  const asked: number[] = [];
  const ports: typeof stage.ports = {
    ...stage.ports,
    nowMs: () => now + stage.nowMs(),
    claim: async (target, tried) => {
      asked.push(target.route.timeoutMs);
      now += 8_000;
      return { ...(await stage.ports.claim(target, tried)), waitedMs: 8_000 };
    },
  };
  expect(await driveCall(ports, aCall())).toMatchObject({ kind: 'retry', waitedMs: 16_000 });
  expect(asked).toEqual([10_000, 7_000]);
});

it.each([
  ['was stopped, because its budgets have no more room', { isStopped: true }, answered],
  ['is exhausted', {}, { kind: 'exhausted' } as CallOutcome],
])(
  'a call that %s shows that in its decision, and is settled as one that broke off',
  async (_, more, outcome) => {
    const stage = aStage([{ outcome, rateUsd: 1, durationMs: 2_000 }]);
    const settlements: unknown[] = [];
    const ports: typeof stage.ports = {
      ...stage.ports,
      deliver: async () => ({ outcome, durationMs: 2_000, held: 500n, most: 400n, ...more }),
      settle: async (_request, _claimed, { delivery }) => {
        const { isStopped, reserved, amount } = delivery;
        settlements.push({ isStopped, reserved, amount });
        return true;
      },
    };
    const end = await driveCall(ports, aCall());
    const shown =
      end.kind === 'succeeded' ? end.attempt?.decision : end.kind === 'retry' ? end.decision : null;
    expect(shown).toMatchObject({ stopped: 'budget' });
    expect(settlements).toEqual([{ isStopped: true, reserved: 500n, amount: 2_000_000_000n }]);
  },
);

it('a call that was not stopped shows nothing of that', async () => {
  const end = await driveCall(aStage([{ outcome: answered }]).ports, aCall());
  expect(end.kind === 'succeeded' && end.attempt?.decision).not.toHaveProperty('stopped');
});

it('C9: a call that begins with known wrong answers counts on from them', async () => {
  const stage = aStage([{ outcome: wrong }, { outcome: wrong }]);
  const request = aCall({ retry: { ...retry, invalidOutput: 2 }, wrong: { count: 2, fault: null } });
  expect(await driveCall(stage.ports, request)).toMatchObject({ kind: 'failed' });
  expect(stage.sent).toEqual(['0']);
});

it('a call that was stopped costs what was seen of it, and never more than it reserved with its risk', () => {
  const before = { countedBefore: 0, retryMax: 3 };
  const perCall = anInstance('a', { cost_type: 'per_call', rate_usd: 1 });
  const claimed = { instance: perCall, reserved: 1_000n, risk: 7n, counted: 0 };
  const sent = { outcome: answered, durationMs: 1, held: 500n, most: 400n } as const;
  const costOf = (more: object, instance = perCall) => {
    const { amount, certainty } = judgeSent({ ...claimed, instance }, { ...sent, ...more }, before);
    return [amount, certainty];
  };
  expect(costOf({ isStopped: true })).toEqual([400n, 'estimated']);
  expect(costOf({})).toEqual([500n, 'exact']);
  const perSecond = anInstance('a', { cost_type: 'per_second', rate_usd: 1 });
  expect(costOf({ isStopped: true }, perSecond)).toEqual([1_007n, 'exact']);
});
