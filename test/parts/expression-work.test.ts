import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { noteWork, turnFor } from '../../src/parts/expression-work.ts';

/** A caller's evaluation, which counts in which turn of the event loop it was done. */
async function evaluate(units: number, done: () => void): Promise<void> {
  const turn = turnFor();
  if (turn !== null) await turn;
  done();
  noteWork(units);
}

/** @returns how many evaluations were done in each turn of the event loop that did any */
async function countByTurn(work: readonly number[]): Promise<number[]> {
  const turns: number[] = [];
  let turn = 0;
  let left = work.length;
  const counting = (async () => {
    while (left > 0) {
      await setImmediate();
      turn += 1;
    }
  })();
  const evaluations = work.map((units) =>
    evaluate(units, () => {
      turns[turn] = (turns[turn] ?? 0) + 1;
      left -= 1;
    }),
  );
  await Promise.all([counting, ...evaluations]);
  return turns.filter((one) => one !== undefined);
}

describe('evaluations of many requests at once', () => {
  it('are each done in a turn of their own, when they are dear', async () => {
    const turns = await countByTurn(Array.from({ length: 20 }, () => 1_500_000));
    expect(Math.max(...turns)).toBe(1);
  });

  it('share a turn up to its work, when they are cheap', async () => {
    const turns = await countByTurn(Array.from({ length: 1_000 }, () => 1_000));
    expect(Math.max(...turns)).toBeLessThanOrEqual(51);
    expect(turns.length).toBeLessThanOrEqual(21);
  });

  it('are done in the order in which they came, also those that come later', async () => {
    const order: number[] = [];
    const first = Array.from({ length: 5 }, (_, at) => evaluate(100_000, () => order.push(at)));
    await setImmediate();
    const later = Array.from({ length: 5 }, (_, at) => evaluate(10, () => order.push(5 + at)));
    await Promise.all([...first, ...later]);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('do not wait when there is no other work', async () => {
    await setImmediate();
    await setImmediate();
    expect(turnFor()).toBeNull();
  });
});
