import { expect, test } from 'vitest';
import { createUploadGate } from '../../../src/clients/media/upload-gate.ts';

/** Uploads that end when the test says so, by their number. */
function uploads(gate: ReturnType<typeof createUploadGate>) {
  const begun: number[] = [];
  const ends: ((isStored: boolean) => void)[] = [];
  const begin = (n: number) =>
    gate.pass(
      () =>
        new Promise<number>((resolve, reject) => {
          begun.push(n);
          ends[n] = (isStored) => (isStored ? resolve(n) : reject(new Error('broken off')));
        }),
    );
  return { begun, begin, end: (n: number, isStored = true) => ends[n]?.(isStored) };
}

test('so many uploads go at once, and the next one when one ends, however it does', async () => {
  const { begun, begin, end } = uploads(createUploadGate({ most: 2, waitMs: 60_000 }));
  const all = [0, 1, 2, 3].map(begin);
  await Promise.resolve();
  expect(begun).toEqual([0, 1]);
  end(1, false);
  await expect(all[1]).rejects.toThrow('broken off');
  expect(begun).toEqual([0, 1, 2]);
  end(0);
  expect(await all[0]).toBe(0);
  end(2);
  expect(await all[2]).toBe(2);
  end(3);
  expect([await all[3], begun]).toEqual([3, [0, 1, 2, 3]]);
});

test('one that waits too long is told to come again, and takes nobody’s turn', async () => {
  const { begun, begin, end } = uploads(createUploadGate({ most: 1, waitMs: 5 }));
  const first = begin(0);
  await expect(begin(1)).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 5 });
  end(0);
  await first;
  const last = begin(2);
  await Promise.resolve();
  end(2);
  expect([await last, begun]).toEqual([2, [0, 2]]);
});
