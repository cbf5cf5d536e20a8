import { pino } from 'pino';
import { expect, it } from 'vitest';
import { judgeOutcome } from '../../../src/core/call/judge.ts';
import type { CallOutcome } from '../../../src/core/call/outcome.ts';
import { reportInstance } from '../../../src/services/routing/breakers.ts';
import type { Claimed } from '../../../src/services/routing/routed-call.ts';
import { anInstance } from '../../core/routing/a-snapshot.ts';

/** What speed and breaker are told of a call with this time, to an instance with this average. */
function reportsOf(
  outcome: CallOutcome,
  timeoutMs: number,
  { duration_ms = null, run_id = null }: { duration_ms?: number | null; run_id?: string | null } = {},
) {
  const told: unknown[] = [];
  const ports = {
    fleet: { of: () => ({ instances: [], priorMs: 2_500 }) },
    registry: { reportRefused: async () => undefined },
    speed: { recordCall: (_: string, call: object) => void told.push(['speed', call]) },
    breakers: { record: (_: string, report: object) => void told.push(['breaker', report]) },
    logger: pino({ level: 'silent' }),
  };
  const claim = { run_id, key: 'call_1' };
  const claimed = { instance: anInstance('a', { duration_ms }), claim, isTrial: false, timeoutMs };
  const verdict = judgeOutcome(outcome, { countedBefore: 0, retryMax: 3 });
  const delivery = { outcome, verdict, durationMs: timeoutMs, counted: 1, amount: 0n, certainty: 'exact' };
  reportInstance(ports as never, claimed as unknown as Claimed, delivery as never);
  return told;
}

it.each([
  ['as a fault when it is known to be quick', 5_000, 100, 1],
  ['in proportion when the caller gave less time', 1_000, 1_000, 0.25],
  ['by the speed of the others when its own is unknown', 5_000, null, 0.5],
])('a hang counts against the instance in score and breaker, %s', (_, timeoutMs, duration_ms, weight) => {
  expect(reportsOf({ kind: 'timeout', timeoutMs }, timeoutMs, { duration_ms })).toEqual([
    ['speed', { durationMs: timeoutMs, costUsd: 0, ok: false, weight }],
    ['breaker', { ok: false, isRefused: false, isTrial: false, weight, refusal: null }],
  ]);
});

it.each([
  ['run_1', 'run_1'],
  [null, 'call_1'],
])(
  'a refusal for now of run %s is one of the caller %s, with the time that it asks for',
  (run_id, caller) => {
    const outcome = { kind: 'overloaded', status: 503, retryAfterMs: 2_000 } as const;
    const report = { ok: false, isRefused: false, isTrial: false, weight: 1 };
    expect(reportsOf(outcome, 1_000, { run_id })).toEqual([
      ['breaker', { ...report, refusal: { caller, retryAfterMs: 2_000 } }],
    ]);
  },
);

it('an answer 409 shows an instance that works', () => {
  const report = { ok: true, isRefused: false, isTrial: false, weight: 1, refusal: null };
  expect(reportsOf({ kind: 'rejected', status: 409, message: 'not yet' }, 1_000)).toEqual([
    ['breaker', report],
  ]);
});
