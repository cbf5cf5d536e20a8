import { expect, test } from 'vitest';
import type { Verdict } from '../../../src/contracts/decision.ts';
import { mayComeBack, timeInLine } from '../../../src/core/call/no-claim.ts';
import { choose } from '../../../src/core/routing/choose.ts';
import type { Choice, InstanceSnapshot } from '../../../src/core/routing/types.ts';
import { anInstance, aRequest } from '../routing/a-snapshot.ts';

function choiceOf(...excluded: readonly (readonly [Verdict, Partial<InstanceSnapshot>])[]): Choice {
  return {
    excluded: excluded.map(([verdict, part]) => ({ verdict, instance: anInstance('one', part) })),
  } as unknown as Choice;
}

const refused = ['input_invalid', { name: 'echo', version: '1.0.0', spec_digest: 'd1' }] as const;

test('a dead instance whose spec was never read is no hope against a refusal by its own version', () => {
  const dead = { name: 'echo', version: '1.0.0', spec_digest: null, rate_usd: 0 };
  expect(mayComeBack(choiceOf(refused, ['down', dead]))).toBe(false);
});

test('one of another version, or with another spec, may still take what was refused', () => {
  const other = { name: 'echo', version: '2.0.0', spec_digest: null, rate_usd: 0 };
  expect(mayComeBack(choiceOf(refused, ['down', other]))).toBe(true);
  expect(mayComeBack(choiceOf(refused, ['breaker_open', { ...other, spec_digest: 'd2' }]))).toBe(true);
  expect(mayComeBack(choiceOf(refused, ['down', { ...other, spec_digest: 'd1' }]))).toBe(false);
});

test('the time in line grows with those who wait, shrinks with the slots, and is told up to 10 s', () => {
  const full = anInstance('full', { held: 2, max_concurrency: 2, duration_ms: 400 });
  const choice = choose([full], aRequest(), 1);
  expect([0, 3, 1_000].map((waiting) => timeInLine(choice, waiting))).toEqual([400, 1_600, 10_000]);
  expect(timeInLine(choose([anInstance('idle')], aRequest(), 1), 3)).toBe(0);
  expect(timeInLine(choose([], aRequest(), 1), 3)).toBe(0);
});
