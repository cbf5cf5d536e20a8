import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createKeyBuckets } from '../../../src/parts/access/key-rates.ts';

const a = [{ key_id: 'a', per_minute: 60 }];

function aClock() {
  const clock = { ms: 0 };
  return { clock, buckets: createKeyBuckets(() => clock.ms) };
}

test('a bucket has the rate of its key, and what was used beyond it is waited for', () => {
  const { clock, buckets } = aClock();
  const take = (count: number) => buckets.take(a, count)?.waitS ?? 0;
  expect([take(0), take(60), take(1)]).toEqual([0, 0, 1]);
  expect(buckets.take([{ key_id: 'b', per_minute: 60 }], 1)).toBeNull();
  clock.ms = 1_000;
  expect([take(1), take(1)]).toEqual([0, 1]);
  clock.ms = 100_000;
  expect(take(0)).toBe(0);
  buckets.debit(a, 120);
  expect(take(0)).toBe(61);
  clock.ms = 161_000;
  expect(take(0)).toBe(0);
});

test.each([1_000, 1e15, Number.MAX_VALUE, Infinity])('a debit of %s is over after five minutes', (count) => {
  const { clock, buckets } = aClock();
  buckets.debit(a, count);
  expect(buckets.take(a, 0)?.waitS).toBe(301);
  clock.ms = 301_000;
  expect(buckets.take(a, 0)).toBeNull();
});

const parent = { key_id: 'parent', per_minute: 60 };

test('keys below one key share its rate', () => {
  const { buckets } = aClock();
  const children = ['one', 'two', 'three'].map((key_id) => [{ key_id, per_minute: 60 }, parent]);
  const taken = Array.from({ length: 180 }, (_, at) => buckets.take(children[at % 3] ?? [], 1));
  expect(taken.filter((empty) => empty === null)).toHaveLength(60);
  expect(taken.at(-1)).toMatchObject({ key_id: 'parent', per_minute: 60 });
  expect(buckets.take([parent], 1)).toMatchObject({ key_id: 'parent' });
});

test('a key that is refused takes nothing from those above it', () => {
  const { buckets } = aClock();
  const child = [{ key_id: 'child', per_minute: 1 }, parent];
  for (let n = 0; n < 100; n++) buckets.take(child, 1);
  const left = Array.from({ length: 100 }, () => buckets.take([parent], 1));
  expect(left.filter((empty) => empty === null)).toHaveLength(59);
});

test('for any use of a tree of keys, no more requests pass than the key above allows', () => {
  const asks = fc.array(fc.record({ child: fc.nat(3), pauseMs: fc.nat(3_000) }), { maxLength: 200 });
  fc.assert(
    fc.property(asks, fc.integer({ min: 1, max: 60 }), (all, perMinute) => {
      const { clock, buckets } = aClock();
      let passed = 0;
      for (const { child, pauseMs } of all) {
        clock.ms += pauseMs;
        const own = { key_id: `child ${child}`, per_minute: perMinute };
        const empty = buckets.take([own, { key_id: 'above', per_minute: perMinute }], 1);
        if (empty === null) passed += 1;
        else expect(empty.waitS).toBeGreaterThan(0);
        expect(passed).toBeLessThanOrEqual(perMinute + (clock.ms / 60_000) * perMinute + 1e-6);
      }
    }),
  );
});
