/** Facts of projects that calls need: read now and then, known at once, and kept while the database is away. */
import { expect, test, vi } from 'vitest';
import { createRecentFacts } from '../../src/parts/recent-facts.ts';

test('a fact is known at once until 5 s have passed, false as well', async () => {
  const read = vi.fn(async (projectId: string) => projectId === 'film');
  let nowMs = 1_000;
  const facts = createRecentFacts(read, () => nowMs);
  expect(await facts.of('film')).toBe(true);
  expect(await facts.of('news')).toBe(false);
  nowMs += 4_000;
  expect([facts.of('film'), facts.of('news')]).toEqual([true, false]);
  expect(read).toHaveBeenCalledTimes(2);
  nowMs += 2_000;
  expect(facts.of('film')).toBeInstanceOf(Promise);
});

test('the last known fact holds while it cannot be read, however often it is asked', async () => {
  let nowMs = 1_000;
  let answer: () => Promise<string> = async () => 'first';
  const facts = createRecentFacts(
    () => answer(),
    () => nowMs,
  );
  await facts.of('film');
  answer = () => Promise.reject(new Error('no database'));
  for (let seconds = 0; seconds < 60; seconds += 6) {
    nowMs += 6_000;
    expect(await facts.of('film')).toBe('first');
  }
  answer = async () => 'second';
  nowMs += 6_000;
  expect(await facts.of('film')).toBe('second');
});

test('a fact that was never read fails with its reason', async () => {
  const facts = createRecentFacts(() => Promise.reject(new Error('no database')));
  await expect(facts.of('film')).rejects.toThrow('no database');
});

test('a fact that changes while it is read is read again', async () => {
  let answerFirst = (_value: number): void => undefined;
  const read = vi.fn(async () => 2);
  read.mockImplementationOnce(() => new Promise((resolve) => (answerFirst = resolve)));
  const facts = createRecentFacts(read);
  const before = facts.of('film');
  facts.forget('film');
  const after = facts.of('film');
  answerFirst(1);
  expect([await before, await after, facts.of('film')]).toEqual([2, 2, 2]);
});
