import type { CancelSignal } from '@capstan/core/cancellation';
import { expect, test } from 'vitest';
import { createOpenCalls } from '../../../src/parts/calls/open-calls.ts';

function untilStopped(signal: CancelSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    signal.addEventListener('abort', () => resolve(signal.reason));
  });
}

test('a call is cancelled when its caller leaves, also one that left before', async () => {
  const caller = new AbortController();
  const open = createOpenCalls();
  const under = open.run(caller.signal, untilStopped);
  caller.abort();
  expect([await under, await open.run(caller.signal, untilStopped)]).toEqual(['cancelled', 'cancelled']);
});

test('closing abandons running and arriving calls, and waits until they have ended', async () => {
  const open = createOpenCalls();
  const ended: unknown[] = [];
  const work = async (signal: CancelSignal) => void ended.push(await untilStopped(signal));
  void open.run(null, work);
  void open.run(new AbortController().signal, work);
  await open.close();
  expect(ended).toEqual(['abandoned', 'abandoned']);
  await open.run(null, work);
  expect(ended).toHaveLength(3);
});

test('closing does not fail when a call does', async () => {
  const open = createOpenCalls();
  const failing = open.run(null, async (signal) => {
    await untilStopped(signal);
    throw new Error('broken');
  });
  const seen = expect(failing).rejects.toThrow('broken');
  await open.close();
  await seen;
});
