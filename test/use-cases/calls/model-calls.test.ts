import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createJoin } from '../../../src/use-cases/calls/model-calls.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function open() {
  const events = new Readable({ read: () => undefined });
  const sent: string[] = [];
  events.push = (part: string) => sent.push(part) > 0;
  return { ...createJoin(events), events, sent };
}

test('the first part goes at once, and those that follow within 8 ms go together', async () => {
  const { write, sent } = open();
  write(['a', 'b']);
  await vi.advanceTimersByTimeAsync(0);
  expect(sent).toEqual(['ab']);
  write(['c']);
  await vi.advanceTimersByTimeAsync(4);
  write(['d']);
  expect(sent).toEqual(['ab']);
  await vi.advanceTimersByTimeAsync(4);
  expect(sent).toEqual(['ab', 'cd']);
});

test('a part after a pause goes at once', async () => {
  const { write, sent } = open();
  write(['a']);
  await vi.advanceTimersByTimeAsync(8);
  write(['b']);
  await vi.advanceTimersByTimeAsync(0);
  expect(sent).toEqual(['a', 'b']);
});

test('an end takes the waiting events along', async () => {
  const { write, flush, sent } = open();
  write(['a']);
  await vi.advanceTimersByTimeAsync(0);
  write(['b']);
  write(['end']);
  flush();
  expect(sent).toEqual(['a', 'bend']);
  await vi.advanceTimersByTimeAsync(8);
  expect(sent).toEqual(['a', 'bend']);
});

test('no work continues for a client that has left', async () => {
  const { write, events, sent } = open();
  write(['a']);
  await vi.advanceTimersByTimeAsync(0);
  write(['b']);
  events.destroy();
  await vi.advanceTimersByTimeAsync(8);
  expect(sent).toEqual(['a']);
  expect(vi.getTimerCount()).toBe(0);
});
