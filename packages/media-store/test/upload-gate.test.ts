import { expect, test } from 'vitest';
import { createUploadGate } from '../src/s3-upload.ts';

/** Uploads that end at the command of the test, by their number. */
function uploads(gate: ReturnType<typeof createUploadGate>) {
  const begun: number[] = [];
  const ends: ((isStored: boolean) => void)[] = [];
  const begin = (n: number, bytes = 10) =>
    gate.pass(
      bytes,
      () =>
        new Promise<number>((resolve, reject) => {
          begun.push(n);
          ends[n] = (isStored) => (isStored ? resolve(n) : reject(new Error('broken off')));
        }),
    );
  /** Those that may begin have. */
  const settle = () => new Promise(setImmediate);
  return { begun, begin, settle, end: (n: number, isStored = true) => ends[n]?.(isStored) };
}

test('uploads hold so many bytes at once, and the next one begins when one ends, however it does', async () => {
  const gate = createUploadGate({ mostBytes: 25, waitMs: 60_000 });
  const { begun, begin, settle, end } = uploads(gate);
  const all = [0, 1, 2, 3].map((n) => begin(n));
  await settle();
  expect([begun, gate.heldBytes()]).toEqual([[0, 1], 20]);
  end(1, false);
  await expect(all[1]).rejects.toThrow('broken off');
  await settle();
  expect(begun).toEqual([0, 1, 2]);
  end(0);
  expect(await all[0]).toBe(0);
  end(2);
  expect(await all[2]).toBe(2);
  await settle();
  end(3);
  expect([await all[3], begun, gate.heldBytes()]).toEqual([3, [0, 1, 2, 3], 0]);
});

test('uploads go in their order: small ones do not pass a large one, which goes by itself', async () => {
  const { begun, begin, settle, end } = uploads(createUploadGate({ mostBytes: 25, waitMs: 60_000 }));
  const all = [begin(0), begin(1, 1_000), begin(2, 1)];
  await settle();
  expect(begun).toEqual([0]);
  end(0);
  await settle();
  expect(begun).toEqual([0, 1]);
  end(1);
  await settle();
  end(2);
  expect(await Promise.all(all)).toEqual([0, 1, 2]);
});

test('a request that waits too long is asked to come again, and blocks no other turn', async () => {
  const { begun, begin, settle, end } = uploads(createUploadGate({ mostBytes: 10, waitMs: 5 }));
  const first = begin(0);
  await expect(begin(1)).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 5 });
  end(0);
  await first;
  const last = begin(2);
  await settle();
  end(2);
  expect([await last, begun]).toEqual([2, [0, 2]]);
});
