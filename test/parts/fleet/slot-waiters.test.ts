/** Which of the calls that wait in a process a free slot wakes. */
import { keyAt, ownKey } from '@capstan/core/residency/residency';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createSlotWaiters, type SlotWish } from '../../../src/parts/fleet/slot-waiters.ts';
import { aSlotWish } from '../../support/factories.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const on = (...resident: string[]) => ({ resident }) as never;

/** Calls by their names, in the order in which they have begun to wait. */
function waitAll(...calls: readonly (readonly [name: string, wish: Partial<SlotWish>])[]) {
  const waiters = createSlotWaiters();
  const woken: string[] = [];
  for (const [name, wish] of calls)
    void waiters
      .wait(aSlotWish('image', wish), 60_000, new AbortController().signal)
      .then((isWoken) => isWoken && woken.push(name));
  return {
    wokenBy: async (instance?: never): Promise<string[]> => {
      waiters.wake('image', instance);
      await Promise.resolve();
      return woken.splice(0);
    },
  };
}

describe('a slot that becomes free wakes', () => {
  it('the first call whose key is loaded there', async () => {
    const { wokenBy } = waitAll(['cold', { key: 'y' }], ['warm', { key: 'x' }], ['next', { key: 'x' }]);
    expect(await wokenBy(on('x'))).toEqual(['warm']);
    expect(await wokenBy(on('x'))).toEqual(['next']);
    expect(await wokenBy(on('x'))).toEqual(['cold']);
  });

  it('the first of a project whose own key is loaded there, on an instance of another project too', async () => {
    const [ofB, ofC] = [ownKey('prj_b', 'x') as string, ownKey('prj_c', 'x') as string];
    const { wokenBy } = waitAll(['c', { key: ofC }], ['b', { key: ofB }]);
    expect(await wokenBy(on(keyAt(ofB, {})))).toEqual(['b']);
  });

  it('also the first of all, once others have passed it for a second', async () => {
    const { wokenBy } = waitAll(['cold', { key: 'y' }], ['warm', { key: 'x' }], ['next', { key: 'x' }]);
    vi.advanceTimersByTime(999);
    expect(await wokenBy(on('x'))).toEqual(['warm']);
    vi.advanceTimersByTime(1);
    expect(await wokenBy(on('x'))).toEqual(['cold', 'next']);
  });

  it('the one that began to wait first, however often it has looked since', async () => {
    const nowMs = performance.now();
    const { wokenBy } = waitAll(
      ['young', { key: 'y', sinceMs: nowMs }],
      ['old', { key: 'z', sinceMs: nowMs - 2_000 }],
      ['warm', { key: 'x', sinceMs: nowMs }],
    );
    expect(await wokenBy(on('x'))).toEqual(['old', 'warm']);
  });

  it('a few where none has its key there, however many wait', async () => {
    const many = Array.from({ length: 500 }, (_, at) => [`${at}`, { key: `session ${at}` }] as const);
    const { wokenBy } = waitAll(...many);
    expect(await wokenBy(on('another'))).toEqual(['0', '1', '2', '3']);
  });

  it('those of each line, which may wait for other slots', async () => {
    const { wokenBy } = waitAll(['a', { key: 'x', line: 'gpu' }], ['b', { key: 'y', line: 'any' }]);
    expect(await wokenBy(on('x'))).toEqual(['a', 'b']);
  });
});

it('slots that were seen by a look wake all', async () => {
  const many = Array.from({ length: 20 }, (_, at) => [`${at}`, { key: `session ${at}` }] as const);
  expect(await waitAll(...many).wokenBy()).toHaveLength(20);
});
