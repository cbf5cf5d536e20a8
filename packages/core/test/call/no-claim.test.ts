import { describe, expect, it, test } from 'vitest';
import {
  explainMiss,
  explainNoClaim,
  isWorthWaiting,
  type LastChoice,
  mayComeBack,
  type NoClaim,
  timeInLine,
} from '../../src/call/no-claim.ts';
import { shortestWaitMs } from '../../src/call/retry.ts';
import type { Verdict } from '../../src/contracts/decision.ts';
import type { Shortage } from '../../src/money/reservation.ts';
import { choose } from '../../src/routing/choose.ts';
import type { Choice, InstanceSnapshot } from '../../src/routing/types.ts';
import { anInstance, aPaid, aRequest, now } from '../routing/a-snapshot.ts';

function choiceOf(...excluded: readonly (readonly [Verdict, Partial<InstanceSnapshot>])[]): Choice {
  return {
    excluded: excluded.map(([verdict, part]) => ({ verdict, instance: anInstance('one', part) })),
  } as unknown as Choice;
}

const refused = ['input_invalid', { name: 'echo', version: '1.0.0', spec_digest: 'd1' }] as const;

test('a dead instance whose spec was never read is no hope against a refusal by its own version', () => {
  const dead = { name: 'echo', version: '1.0.0', spec_digest: null, rate_usd: 0 };
  expect(mayComeBack(choiceOf(refused, ['down', { ...dead, state: 'down' }]))).toBe(false);
});

test('an instance of another version, or with another spec, may still take a refused input', () => {
  const other = { name: 'echo', version: '2.0.0', spec_digest: null, rate_usd: 0 };
  expect(mayComeBack(choiceOf(refused, ['down', { ...other, state: 'down' }]))).toBe(true);
  expect(mayComeBack(choiceOf(refused, ['draining', { ...other, state: 'draining' }]))).toBe(true);
  expect(mayComeBack(choiceOf(refused, ['draining', { ...other, state: 'deregistered' }]))).toBe(false);
  expect(mayComeBack(choiceOf(refused, ['breaker_open', { ...other, spec_digest: 'd2' }]))).toBe(true);
  expect(mayComeBack(choiceOf(refused, ['down', { ...other, state: 'down', spec_digest: 'd1' }]))).toBe(
    false,
  );
});

test('the time in line grows with the callers, shrinks with the slots, and is reported up to 10 min', () => {
  const full = anInstance('full', { held: 2, max_concurrency: 2, duration_ms: 400 });
  const choice = choose([full], aRequest(), 1);
  expect([0, 3, 10_000].map((waiting) => timeInLine(choice, waiting))).toEqual([400, 1_600, 600_000]);
  const leaving = anInstance('leaving', { held: 1, max_concurrency: 2, duration_ms: 400 });
  expect(timeInLine(choose([leaving], aRequest(), 1), 3)).toBe(800);
  expect(timeInLine(choose([], aRequest(), 1), 3)).toBe(0);
});

const usd = 1_000_000_000n;
const aShortage: Shortage = {
  scope: 'project',
  runId: null,
  resetsAt: null,
  limit: 5n * usd,
  spent: 3n * usd,
  reserved: 2n * usd,
};

/** The choice of a search without a candidate left. */
function aLastChoice(verdicts: readonly Verdict[], part: Partial<LastChoice> = {}): LastChoice {
  const choice: Choice = {
    ...choose([], aRequest(), 1),
    verdicts: new Map(verdicts.map((verdict) => [verdict, 1])),
    ...part.choice,
  };
  return { reason: 'nobody can', refusals: [], shortage: null, nowMs: now, ...part, choice };
}

/** `code final|later ms` */
function inShort({ error, isFinal, retryAfterMs }: NoClaim): string {
  return `${error.code} ${isFinal ? 'final' : 'later'} ${retryAfterMs}`;
}

const findings = [
  { pointer: '', message: 'is odd' },
  { pointer: '/a', message: 'is missing' },
  { pointer: '/a', message: 'is missing' },
];

describe('a call that no instance took', () => {
  it('comes again soon when a slot was lost to a faster call, despite other reasons', () => {
    const lost = aLastChoice(['lost_claim', 'input_invalid'], { refusals: findings });
    expect(explainNoClaim(lost)).toEqual({
      error: { code: 'overloaded', message: 'nobody can' },
      isFinal: false,
      isFull: true,
      retryAfterMs: shortestWaitMs,
    });
  });

  it('comes again soon when the best is full', () => {
    const choice = choose([anInstance('full', { held: 1 })], aRequest(), 1);
    expect(inShort(explainNoClaim(aLastChoice([], { choice })))).toBe(`overloaded later ${shortestWaitMs}`);
  });

  it('is refused for good with each finding once', () => {
    expect(explainNoClaim(aLastChoice(['input_invalid'], { refusals: findings }))).toEqual({
      error: {
        code: 'input_invalid',
        message: 'the input does not match the input schema: / is odd; /a is missing',
        details: { errors: findings },
      },
      isFinal: true,
      retryAfterMs: shortestWaitMs,
    });
  });

  it('names every finding, so that failures which differ in the last one differ', () => {
    const refusals = Array.from({ length: 7 }, (_, at) => ({ pointer: `/${at}`, message: 'is missing' }));
    const { error } = explainNoClaim(aLastChoice(['input_invalid'], { refusals }));
    expect(error.message).toMatch(/\/6 is missing$/);
  });

  it.each([
    ['the fault of the input is unknown', aLastChoice(['input_invalid'])],
    ['no instance refused the input', aLastChoice(['down'], { refusals: findings })],
    ['the budget is unknown', aLastChoice(['over_budget'])],
    ['no price was over the budget', aLastChoice(['down'], { shortage: aShortage })],
  ])('waits for an instance where %s', (_, last) => {
    expect(inShort(explainNoClaim(last))).toBe(`no_instance later ${shortestWaitMs}`);
  });

  it('reports the lowest possible ceiling', () => {
    const choice = { ...aLastChoice(['over_ceiling']).choice, minimumUsd: 0.5 };
    expect(explainNoClaim(aLastChoice([], { choice }))).toEqual({
      error: { code: 'ceiling_too_low', message: 'nobody can', details: { minimum_usd: 0.5 } },
      isFinal: true,
      retryAfterMs: shortestWaitMs,
    });
  });

  it.each([
    [40, { left_ms: 40 }],
    [undefined, { left_ms: null }],
  ])('has no time when %s ms are left', (leftMs, details) => {
    expect(explainNoClaim(aLastChoice(['no_time'], { leftMs }))).toEqual({
      error: { code: 'step_timeout', message: 'nobody can', details },
      isFinal: true,
      retryAfterMs: shortestWaitMs,
    });
  });

  it('has no budget when it would not even fit beside what is spent', () => {
    const choice = { ...aLastChoice(['over_budget']).choice, minimumUsd: 2.5 };
    const figures = { limit_usd: 5, spent_usd: 3, reserved_usd: 2, minimum_usd: 2.5, resets_at: null };
    expect(explainNoClaim(aLastChoice([], { choice, shortage: aShortage }))).toEqual({
      error: {
        code: 'budget_exhausted',
        message: 'the budget of the project’s day has no room for 2.5 USD: limit 5 USD, spent 3, reserved 2',
        details: { scope: 'project', ...figures },
      },
      isFinal: true,
      retryAfterMs: shortestWaitMs,
    });
  });

  it('waits for budget that is reserved and may come back', () => {
    const choice = { ...aLastChoice(['over_budget']).choice, minimumUsd: 2 };
    const shortage = { ...aShortage, scope: 'run', runId: 'run_1' } as const;
    const none = explainNoClaim(aLastChoice([], { choice, shortage }));
    expect(inShort(none)).toBe(`budget_reserved later ${shortestWaitMs}`);
    expect(none.error.message).toBe(
      'the budget of the run has no room for 2 USD: limit 5 USD, spent 3, reserved 2',
    );
    expect(none.error.details).toMatchObject({ scope: 'run', run_id: 'run_1', minimum_usd: 2 });
  });

  it('shows no figures of the day of all projects', () => {
    const choice = { ...aLastChoice(['over_budget']).choice, minimumUsd: 2 };
    const shortage = { ...aShortage, scope: 'global' } as const;
    const { error } = explainNoClaim(aLastChoice([], { choice, shortage }));
    expect(error.message).toBe('the budget of the day of all projects has no room for 2 USD');
  });

  it('counts an unknown minimum as nothing', () => {
    const spent = { ...aShortage, spent: 5n * usd };
    const none = explainNoClaim(aLastChoice(['over_budget'], { shortage: spent }));
    expect(inShort(none)).toBe(`budget_reserved later ${shortestWaitMs}`);
  });

  it('comes again when the first breaker lets a call through, whatever else speaks against it', () => {
    const choice = choose([anInstance('one', { breaker_until_ms: now + 9_000 })], aRequest(), 1);
    const none = explainNoClaim(aLastChoice([], { choice, refusals: findings }));
    expect(inShort(none)).toBe('no_instance later 9000');
  });

  it('is not refused for good while one of another spec rests', () => {
    const fleet = [
      anInstance('one', { spec_digest: 'd1' }),
      anInstance('two', { spec_digest: 'd2', breaker_until_ms: now + 9_000 }),
    ];
    const choice = choose(fleet, aRequest({ ruledOut: new Map([['one', 'input_invalid']]) }), 1);
    const none = explainNoClaim(aLastChoice([], { choice, refusals: findings }));
    expect(inShort(none)).toBe('no_instance later 9000');
  });
});

test('a search without a claim has chosen no instance, though one was free', () => {
  const request = aRequest();
  const choice = choose([anInstance('free')], request, 1);
  const { decision, error } = explainMiss('dec_1', { request, choice }, { refusals: [], shortage: null });
  expect(decision).toMatchObject({ decision_id: 'dec_1', chosen: null });
  expect(error.message).toBe(decision.reason);
});

describe('whether to wait for a slot or an instance', () => {
  const nobody = new Set<string>();

  it.each([
    ['the best is full', choose([anInstance('full', { held: 1 })], aRequest(), 1), true],
    ['another call was faster', aLastChoice(['lost_claim', 'over_budget']).choice, true],
    ['no instance exists', choose([], aRequest(), 1), true],
    ['the input is refused', aLastChoice(['input_invalid']).choice, false],
    ['the ceiling is too low', aLastChoice(['over_ceiling']).choice, false],
    ['the budget is used up', aLastChoice(['over_budget']).choice, false],
    ['the time is too short', aLastChoice(['no_time']).choice, false],
    [
      'the ceiling is too low for all but one that rests',
      choose(
        [aPaid('dear', 9), anInstance('rests', { breaker_until_ms: now + 9_000 })],
        aRequest({ ceilingUsd: 1 }),
        1,
      ),
      true,
    ],
  ] as const)('%s: %3$s', (_, choice, isWorth) => {
    expect(isWorthWaiting(choice, nobody)).toBe(isWorth);
  });

  it('not after another instance has failed the call, unless a slot may become free', () => {
    const tried = new Set(['other']);
    expect(isWorthWaiting(choose([], aRequest(), 1), tried)).toBe(false);
    expect(isWorthWaiting(choose([anInstance('full', { held: 1 })], aRequest(), 1), tried)).toBe(true);
  });

  it('not for one that is down and costs money: its price is not looked at', () => {
    const other = { name: 'echo', version: '2.0.0', spec_digest: 'd2' };
    expect(mayComeBack(choiceOf(refused, ['down', { ...other, rate_usd: 0.1, state: 'down' }]))).toBe(false);
    expect(mayComeBack(choiceOf(refused, ['over_ceiling', { ...other, rate_usd: 0 }]))).toBe(false);
  });
});
