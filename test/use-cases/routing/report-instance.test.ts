import { judgeOutcome } from '@capstan/core/call/judge';
import type { CallOutcome } from '@capstan/core/call/outcome';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { anInstance } from '../../../packages/core/test/routing/a-snapshot.ts';
import type { CallRequest, Claimed } from '../../../src/parts/calls/routed-call.ts';
import { newId } from '../../../src/parts/ids.ts';
import { reportInstance } from '../../../src/use-cases/routing/report-instance.ts';

interface Called extends Partial<Pick<CallRequest, 'projectId' | 'input'>> {
  readonly duration_ms?: number | null;
  readonly run_id?: string | null;
}

/** The evidence for speed and breaker from a call with this time, to an instance with this average. */
function reportsOf(
  outcome: CallOutcome,
  timeoutMs: number,
  { duration_ms = null, run_id = null, ...of }: Called = {},
) {
  const told: unknown[] = [];
  const ports = {
    fleet: { seenBy: () => ({ of: () => ({ instances: [], priorMs: 2_500 }) }) },
    registry: { reportRefused: async () => undefined },
    speed: { recordCall: (_: string, call: object) => void told.push(['speed', call]) },
    breakers: { record: (_: string, report: object) => void told.push(['breaker', report]) },
    logger: pino({ level: 'silent' }),
  };
  const claim = { run_id, key: newId('call') };
  const claimed = { instance: anInstance('a', { duration_ms }), claim, isTrial: false, timeoutMs };
  const request = { projectId: 'prj_1', input: {}, ...of };
  const verdict = judgeOutcome(outcome, { countedBefore: 0, retryMax: 3 });
  const delivery = { outcome, verdict, durationMs: timeoutMs, counted: 1, amount: 0n, certainty: 'exact' };
  const made = { request: request as unknown as CallRequest, claimed: claimed as unknown as Claimed };
  reportInstance(ports as never, made, delivery as never);
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

const busy = { kind: 'overloaded', status: 503, retryAfterMs: 2_000 } as const;

/** As whose refusal the refusal of a call counts. */
function callerOf(of: Called): string {
  const [told] = reportsOf(busy, 1_000, of) as [[string, { readonly refusal: { readonly caller: string } }]];
  return told[1].refusal.caller;
}

it('a refusal for now reports the time that it asks for, and is one of the run of the call', () => {
  expect(reportsOf(busy, 1_000, { run_id: 'run_1' })).toEqual([
    [
      'breaker',
      {
        ok: false,
        isRefused: false,
        isTrial: false,
        weight: 1,
        refusal: { caller: 'run_1', retryAfterMs: 2_000 },
      },
    ],
  ]);
  expect(callerOf({ run_id: 'run_1', input: { ticket: 2 } })).toBe('run_1');
});

it('a direct call that asks the same again is the same caller; another question or project is another', () => {
  const of = { projectId: 'prj_1', input: { ticket: 't-7' } };
  const asked = callerOf(of);
  expect(callerOf({ ...of, input: { ticket: 't-7' } })).toBe(asked);
  const others: Called[] = [{ input: { ticket: 't-8' } }, { input: {} }, { projectId: 'prj_2' }];
  for (const other of others) expect(callerOf({ ...of, ...other })).not.toBe(asked);
});

it('an answer 409 shows an instance that works', () => {
  const report = { ok: true, isRefused: false, isTrial: false, weight: 1, refusal: null };
  expect(reportsOf({ kind: 'rejected', status: 409, message: 'not yet' }, 1_000)).toEqual([
    ['breaker', report],
  ]);
});
