import fc from 'fast-check';
import { expect, test } from 'vitest';
import { longestPauseMs, pauseAfter, shortestPauseMs } from '../src/pacing.ts';

const ms = fc.double({ min: 0, max: 100_000, noNaN: true });

/** When the rounds of a poll begin after the last news, where each takes as long. */
function playRounds(roundMs: number, untilMs: number): readonly number[] {
  const begins: number[] = [];
  for (let at = 0; at < untilMs; at += roundMs) {
    at += pauseAfter(at, roundMs);
    begins.push(at);
  }
  return begins;
}

test('a pause grows with the quiet and with the round, between its two limits', () => {
  fc.assert(
    fc.property(ms, ms, ms, (quiet, round, more) => {
      const pause = pauseAfter(quiet, round);
      expect(pause).toBeGreaterThanOrEqual(shortestPauseMs);
      expect(pause).toBeLessThanOrEqual(longestPauseMs);
      expect(pauseAfter(quiet + more, round)).toBeGreaterThanOrEqual(pause);
      expect(pauseAfter(quiet, round + more)).toBeGreaterThanOrEqual(pause);
    }),
  );
});

test('news are late by a fifth of the quiet before them, by two short pauses where there was little', () => {
  const begins = [0, ...playRounds(1, 60_000)];
  fc.assert(
    fc.property(fc.double({ min: 0, max: 59_000, noNaN: true }), (newsAt) => {
      const seenAt = begins.find((begin) => begin >= newsAt) ?? Number.NaN;
      const mostMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, newsAt / 5));
      expect(seenAt - newsAt).toBeLessThanOrEqual(mostMs + 1);
    }),
  );
});

test('a poll is at rest after a little more than a second, and has made few more rounds until then', () => {
  const begins = playRounds(0, 10_000);
  const restAt = begins.findIndex((begin, index) => begin - (begins[index - 1] ?? 0) === longestPauseMs);
  expect(begins[restAt - 1]).toBeLessThan(1_500);
  expect(begins.length).toBeLessThan(10_000 / longestPauseMs + 16);
});

test('a poll works a fifth of the time at most, until it comes as rarely as one at rest', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: longestPauseMs / 4, noNaN: true }), ms, (round, quiet) => {
      expect(round / (round + pauseAfter(quiet, round))).toBeLessThanOrEqual(0.2 + 1e-9);
    }),
  );
});
