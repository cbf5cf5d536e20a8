import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createLeaseRenewer, type LeaseRenewer } from '../../../src/parts/delivery/lease-renewer.ts';
import { silentLogger } from '../../use-cases/registry/registry-bench.ts';

const intervalMs = 1_000;
const retryMs = 100;
/** What each renewal was asked for, in their order. */
let renewals: string[][];
let renew: (held: readonly string[]) => Promise<ReadonlySet<string>>;
let renewer: LeaseRenewer<string>;

beforeEach(() => {
  // A time limit that passes takes one more turn of the loop, which takes no time.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  renewals = [];
  renew = (held) => Promise.resolve(new Set(held));
  renewer = createLeaseRenewer<string>({
    renew: (held) => {
      renewals.push([...held]);
      return renew(held);
    },
    idOf: (hold) => hold,
    intervalMs,
    retryMs,
    logger: silentLogger,
  });
});
afterEach(() => {
  renewer.close();
  vi.useRealTimers();
});

function pass(ms: number): Promise<unknown> {
  return vi.advanceTimersByTimeAsync(ms);
}

it('renews every held lease once in each interval, for as long as it is held', async () => {
  const end = renewer.hold('a', () => undefined);
  renewer.hold('b', () => undefined);
  await pass(2 * intervalMs);
  end();
  await pass(intervalMs);
  expect(renewals).toEqual([['a', 'b'], ['a', 'b'], ['b']]);
});

it('asks nothing while nothing is held', async () => {
  await pass(3 * intervalMs);
  expect(renewals).toEqual([]);
});

it('reports once each holder that has lost its lease', async () => {
  const lost: string[] = [];
  for (const hold of ['a', 'b']) renewer.hold(hold, () => lost.push(hold));
  renew = () => Promise.resolve(new Set(['b']));
  await pass(2 * intervalMs);
  expect(lost).toEqual(['a']);
  expect(renewals).toEqual([['a', 'b'], ['b']]);
});

it.each([
  ['fails', () => Promise.reject(new Error('no database')), 0],
  ['hangs', () => new Promise<never>(() => undefined), intervalMs],
])(
  'tries again soon when a renewal %s, and no holder has lost its lease by that',
  async (_, broken, lateMs) => {
    const lost: string[] = [];
    renewer.hold('a', () => lost.push('a'));
    renew = broken;
    await pass(intervalMs + lateMs);
    renew = (held) => Promise.resolve(new Set(held));
    await pass(retryMs);
    expect(renewals).toHaveLength(2);
    await pass(intervalMs);
    expect(renewals).toHaveLength(3);
    expect(lost).toEqual([]);
  },
);
