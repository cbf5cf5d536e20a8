import { longestPauseMs, shortestPauseMs } from '@capstan/core/pacing';
import { expect, test } from 'vitest';
import { createFollowPoll, type FollowPollOptions } from '../../../src/parts/feeds/follow-poll.ts';
import { createHandTiming } from '../../support/hand-timing.ts';

/** @param options what differs from a poll that finds nothing, on behalf of one who stays */
function start(options: Partial<FollowPollOptions> = {}) {
  const timing = createHandTiming();
  const seen = { rounds: 0, errors: 0 };
  const poll = createFollowPoll({
    isFollowed: () => true,
    onError: () => {
      seen.errors += 1;
    },
    timing,
    ...options,
    poll: () => {
      seen.rounds += 1;
      return options.poll?.() ?? Promise.resolve(false);
    },
  });
  const goOnUntil = async (at: number): Promise<void> => {
    while (timing.now() < at) await timing.goOn();
  };
  return { poll, timing, seen, goOnUntil };
}

test('a poll at rest makes no more than four rounds a second', async () => {
  const { poll, seen, timing, goOnUntil } = start();
  poll.quicken();
  await goOnUntil(5_000);
  const { rounds } = seen;
  const startedAt = timing.now();
  await goOnUntil(startedAt + 60_000);
  expect(seen.rounds - rounds).toBeLessThanOrEqual(60_000 / longestPauseMs);
  expect(rounds).toBeLessThanOrEqual(5_000 / longestPauseMs + 16);
});

test('news make a poll quick, and so does a new follower', async () => {
  let isNews = false;
  const { poll, timing, goOnUntil } = start({ poll: async () => isNews });
  poll.quicken();
  expect(await timing.goOn()).toBe(shortestPauseMs);
  await goOnUntil(5_000);
  isNews = true;
  expect(await timing.goOn()).toBe(longestPauseMs);
  for (let round = 0; round < 10; round++) expect(await timing.goOn()).toBe(shortestPauseMs);
  isNews = false;
  await goOnUntil(10_000);
  poll.quicken();
  expect(await timing.goOn()).toBe(shortestPauseMs);
});

test('any number of new followers does not delay the round', async () => {
  const { poll, timing } = start();
  poll.quicken();
  timing.after(20, () => poll.quicken());
  expect(await timing.goOn()).toBe(20);
  expect(await timing.goOn()).toBe(shortestPauseMs - 20);
});

test('rounds do not overlap, and one that fails is not the last', async () => {
  const fails: ((error: Error) => void)[] = [];
  const { poll, timing, seen } = start({ poll: () => new Promise((_, reject) => fails.push(reject)) });
  poll.quicken();
  await timing.goOn();
  poll.quicken();
  expect(timing.isWaiting()).toBe(false);
  fails[0]?.(new Error('gone'));
  await timing.goOn();
  expect(seen).toEqual({ rounds: 2, errors: 1 });
});

test('without a follower there is no round, until one comes', async () => {
  let isFollowed = true;
  let rests = 0;
  const { poll, timing, seen } = start({
    isFollowed: () => isFollowed,
    onRest: () => {
      rests += 1;
    },
  });
  poll.quicken();
  await timing.goOn();
  isFollowed = false;
  await timing.goOn();
  expect(timing.isWaiting()).toBe(false);
  expect([seen.rounds, rests]).toEqual([1, 1]);
  isFollowed = true;
  poll.quicken();
  await timing.goOn();
  expect(seen.rounds).toBe(2);
});

test('a stopped poll does nothing more, also when a round is running', async () => {
  const ends: ((isNews: boolean) => void)[] = [];
  const { poll, timing } = start({ poll: () => new Promise((resolve) => ends.push(resolve)) });
  poll.quicken();
  await timing.goOn();
  poll.stop();
  ends[0]?.(true);
  await Promise.resolve();
  await Promise.resolve();
  expect(timing.isWaiting()).toBe(false);
});
