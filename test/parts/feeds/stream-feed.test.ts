import { longestPauseMs, shortestPauseMs } from '@capstan/core/pacing';
import { expect, test } from 'vitest';
import type { StreamRound, StreamWatcher } from '../../../src/parts/feeds/stream-feed.ts';
import { createStreamFeed } from '../../../src/parts/feeds/stream-feed.ts';
import { createStepSizes } from '../../../src/parts/step-sizes.ts';
import { createRoundReader } from '../../../src/use-cases/stream/rounds.ts';
import { useDatabase } from '../../support/database.ts';
import { aRun } from '../../support/factories.ts';
import { createHandTiming } from '../../support/hand-timing.ts';
import { untilReadable, writeReadableEvent } from '../../support/readable-event.ts';
import { silentLogger } from '../../use-cases/registry/registry-bench.ts';

const { db } = useDatabase(4);

async function look() {
  const run = await aRun(db);
  await untilReadable(db);
  const timing = createHandTiming();
  const read = { horizons: 0, runs: 0, reviews: 0 };
  db.on('query', ({ sql }: { sql: string }) => {
    if (sql.includes('as horizon')) read.horizons += 1;
    if (sql.includes('with changed as')) read.runs += 1;
    if (sql.includes('from review r')) read.reviews += 1;
  });
  const feed = createStreamFeed(
    {
      db,
      logger: silentLogger,
      createReader: (now) => createRoundReader({ db, stepSizes: createStepSizes() }, now),
    },
    timing,
  );
  const rounds: StreamRound[] = [];
  const watcher: StreamWatcher = {
    projectId: run.project_id,
    topics: new Set(['runs', 'reviews', 'budgets']),
    runIds: [run.run_id],
    take: (round) => void rounds.push(round),
  };
  const start = await feed.add(watcher);
  /** A round, from its begin until its events are sent. */
  const goOn = async (): Promise<number> => {
    const before = rounds.length;
    const ms = await timing.goOn();
    while (rounds.length === before) await new Promise((resolve) => setImmediate(resolve));
    return ms;
  };
  return { run, timing, feed, watcher, rounds, start, goOn, read };
}

test('events come in quick rounds, states in some of them, and each event once', async () => {
  const { run, rounds, start, goOn, timing, feed, read } = await look();
  const { reviews } = read;
  let written = 0;
  while (timing.now() < 3_000) {
    await writeReadableEvent(db, run.run_id);
    written += 1;
    await goOn();
  }
  while (rounds.flatMap(({ events }) => events).length < written) await goOn();
  expect(written).toBeGreaterThan(2_000 / shortestPauseMs);
  expect(read.runs).toBeLessThanOrEqual(timing.now() / longestPauseMs + 1);
  expect(read.runs).toBeGreaterThan(3);
  expect(read.reviews - reviews).toBeLessThanOrEqual(timing.now() / 1_000 + 1);
  const ids = rounds.flatMap(({ events }) => events.map(({ id }) => id));
  expect(new Set(ids).size).toBe(written);
  const positions = [start, ...rounds.map(({ position }) => position)];
  for (const [index, { events, horizon }] of positions.entries()) {
    const before = positions[index - 1] ?? start;
    expect(BigInt(events)).toBeGreaterThanOrEqual(BigInt(horizon));
    expect(BigInt(events)).toBeGreaterThanOrEqual(BigInt(before.events));
    expect(BigInt(horizon)).toBeGreaterThanOrEqual(BigInt(before.horizon));
  }
  expect(rounds.some(({ position }) => position.events !== position.horizon)).toBe(true);
  feed.close();
});

test('without events, the states are read four times a second, and not at all after the last follower', async () => {
  const { timing, goOn, feed, watcher, read } = await look();
  while (timing.now() < 5_000) await goOn();
  const before = { ...read };
  const startedAt = timing.now();
  while (timing.now() < startedAt + 15_000) await goOn();
  expect(read).toEqual({
    horizons: before.horizons + 60,
    runs: before.runs + 60,
    reviews: before.reviews + 15,
  });
  feed.remove(watcher);
  const last = { ...read };
  await timing.goOn();
  expect(timing.isWaiting()).toBe(false);
  expect(read).toEqual(last);
});
