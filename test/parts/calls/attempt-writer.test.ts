import { describe, expect, test } from 'vitest';
import { createBatchWriter } from '../../../src/parts/calls/attempt-writer.ts';

function isItemsFault(error: unknown): boolean {
  return error instanceof RangeError;
}

/** A batch writer that keeps what it was sent; statements end when `answer` is called. */
function aWriter(options: { maxItems?: number; patienceMs?: number } = {}) {
  const sent: number[][] = [];
  const waiting: ((error?: Error) => void)[] = [];
  const writer = createBatchWriter<number, number>({
    send: (items) => {
      sent.push([...items]);
      return new Promise((resolve, reject) => {
        waiting.push((error) => (error === undefined ? resolve(items.map((n) => n * 10)) : reject(error)));
      });
    },
    maxItems: 64,
    patienceMs: 3_600_000,
    isItemsFault,
    ...options,
  });
  const answer = async (error?: Error): Promise<void> => {
    waiting.shift()?.(error);
    await new Promise(setImmediate);
  };
  return { writer, sent, answer };
}

function turn(): Promise<void> {
  return new Promise(setImmediate);
}

describe('a batch writer', () => {
  test('sends together the items of one turn, and those that came while a statement was running', async () => {
    const { writer, sent, answer } = aWriter();
    const first = [writer.push(1), writer.push(2)];
    await turn();
    const second = [writer.push(3), writer.push(4)];
    await turn();
    expect(sent).toEqual([[1, 2]]);
    await answer();
    expect(sent).toEqual([
      [1, 2],
      [3, 4],
    ]);
    await answer();
    expect(await Promise.all([...first, ...second])).toEqual([10, 20, 30, 40]);
  });

  test('sends no more at once than it may', async () => {
    const { writer, sent, answer } = aWriter({ maxItems: 2 });
    const all = [1, 2, 3].map((n) => writer.push(n));
    await turn();
    await answer();
    await answer();
    expect(sent).toEqual([[1, 2], [3]]);
    expect(await Promise.all(all)).toEqual([10, 20, 30]);
  });

  test('takes a deferrable item along, in order, and sends it alone when no other comes', async () => {
    const { writer, sent, answer } = aWriter({ patienceMs: 5 });
    void writer.push(1, true);
    await turn();
    expect(sent).toEqual([]);
    void writer.push(2);
    await turn();
    expect(sent).toEqual([[1, 2]]);
    await answer();
    const alone = writer.push(3, true);
    await expect.poll(() => sent.length).toBe(2);
    await answer();
    expect(await alone).toBe(30);
  });

  test('repeats a batch singly when an item may be at fault: only that one fails', async () => {
    const { writer, sent, answer } = aWriter();
    const [good, bad] = [writer.push(1), writer.push(2)];
    bad.catch(() => undefined);
    await turn();
    await answer(new RangeError('one of them'));
    await answer();
    await answer(new RangeError('this one'));
    expect(sent).toEqual([[1, 2], [1], [2]]);
    expect(await good).toBe(10);
    await expect(bad).rejects.toThrow('this one');
  });

  test('fails a whole batch when the way to the database is at fault, and continues with the next', async () => {
    const { writer, sent, answer } = aWriter();
    const lost = [writer.push(1), writer.push(2)].map((one) => one.catch((error: Error) => error.message));
    await turn();
    await answer(new Error('connection lost'));
    expect(await Promise.all(lost)).toEqual(['connection lost', 'connection lost']);
    const next = writer.push(3);
    await turn();
    await answer();
    expect(await next).toBe(30);
    expect(sent).toEqual([[1, 2], [3]]);
  });
});
