import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createStoreRetries } from '../../../src/parts/calls/attempt-writer.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

class Refused extends Error {}
const hourMs = 3_600_000;

/** A database that is away, or refuses, until the test restores it. */
function aWrite(fault: Error) {
  const { retryUntilStored, ...retries } = createStoreRetries({
    isItemsFault: (error) => error instanceof Refused,
    logger: pino({ level: 'silent' }),
  });
  let isBack = false;
  const end = retryUntilStored(async () => {
    if (!isBack) throw fault;
    return 'written';
  }).catch((error: Error) => error.message);
  const comeBack = (): void => {
    isBack = true;
  };
  return { ...retries, end, comeBack };
}

describe('a write that is retried until it is stored', () => {
  test('is written although the database was away for an hour', async () => {
    const { end, comeBack } = aWrite(new Error('away'));
    await vi.advanceTimersByTimeAsync(hourMs);
    comeBack();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await end).toBe('written');
  });

  test('is given up after a while when its content is refused', async () => {
    const { end } = aWrite(new Refused('no such column'));
    await vi.advanceTimersByTimeAsync(25_000);
    expect(await end).toBe('no such column');
  });

  test('is tried some seconds more when the process ends', async () => {
    const [late, never] = [aWrite(new Error('away')), aWrite(new Error('away'))];
    await vi.advanceTimersByTimeAsync(hourMs);
    const settled = Promise.all([late.close(), never.close()]);
    late.comeBack();
    await vi.advanceTimersByTimeAsync(8_000);
    await settled;
    expect([await late.end, await never.end]).toEqual(['written', 'away']);
  });
});
