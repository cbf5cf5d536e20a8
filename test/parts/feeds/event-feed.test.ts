import { CancelSource } from '@capstan/core/cancellation';
import { longestPauseMs, shortestPauseMs } from '@capstan/core/pacing';
import { expect, test } from 'vitest';
import { createEventFeed } from '../../../src/parts/feeds/event-feed.ts';
import { useDatabase } from '../../support/database.ts';
import { aRun } from '../../support/factories.ts';
import { createHandTiming } from '../../support/hand-timing.ts';
import { untilReadable, writeReadableEvent } from '../../support/readable-event.ts';
import { waitFor } from '../../support/wait.ts';
import { silentLogger } from '../../use-cases/registry/registry-bench.ts';

const { db } = useDatabase(4);

test('a watcher that reads slowly misses nothing, and little waits for it', async () => {
  const { run_id } = await aRun(db);
  const feed = createEventFeed({ db, logger: silentLogger });
  const stop = new CancelSource();
  const events = feed.watch(run_id, 0, stop)[Symbol.asyncIterator]();
  expect((await events.next()).value?.seq).toBe(1);
  const write = (count: number) =>
    db.raw(`insert into event (run_id, type) select ?, 'step.routed' from generate_series(1, ?)`, [
      run_id,
      count,
    ]);
  const polls = { count: 0 };
  db.on('query', ({ sql }: { sql: string }) => {
    if (sql.includes('as horizon')) polls.count++;
  });
  const second = events.next(); // it is subscribed from here on
  for (let n = 0; n < 4; n++) {
    await write(600);
    const before = polls.count;
    await waitFor('the feed to look', () => polls.count > before + 1);
  }
  const seqs = [(await second).value?.seq];
  while (seqs.length < 2_400) seqs.push((await events.next()).value?.seq);
  expect(seqs).toEqual(Array.from({ length: 2_400 }, (_, n) => n + 2));
  stop.abort('gone');
  expect((await events.next()).done).toBe(true);
  feed.close();
});

async function followed() {
  const { run_id } = await aRun(db);
  await untilReadable(db); // no round comes by itself that would bring it later
  const timing = createHandTiming();
  const feed = createEventFeed({ db, logger: silentLogger, timing });
  const stop = new CancelSource();
  const events = feed.watch(run_id, 0, stop)[Symbol.asyncIterator]();
  await events.next();
  const next = events.next(); // it is subscribed from here on
  const end = async (): Promise<void> => {
    stop.abort('gone');
    await next;
    await events.return?.();
    feed.close();
  };
  return { run_id, timing, events, next, end };
}

test('the first event after a quiet comes with the next round, those after it 25 ms apart', async () => {
  const { run_id, timing, events, next, end } = await followed();
  while (timing.now() < 5_000) await timing.goOn();
  await waitFor('the last round to be over', () => timing.isWaiting());
  await writeReadableEvent(db, run_id);
  expect(await timing.goOn()).toBe(longestPauseMs);
  expect((await next).value?.seq).toBe(2);
  for (let seq = 3; seq < 8; seq++) {
    await writeReadableEvent(db, run_id);
    expect(await timing.goOn()).toBe(shortestPauseMs);
    expect((await events.next()).value?.seq).toBe(seq);
  }
  await end();
});

test('a follower of a run that does nothing costs four small statements a second', async () => {
  const { timing, end } = await followed();
  while (timing.now() < 5_000) await timing.goOn();
  const statements: string[] = [];
  const count = ({ sql }: { sql: string }): void => void statements.push(sql);
  db.on('query', count);
  const startedAt = timing.now();
  while (timing.now() < startedAt + 60_000) await timing.goOn();
  db.removeListener('query', count);
  expect(statements.filter((sql) => sql.includes('as horizon')).length).toBeLessThanOrEqual(240);
  // Another transaction of the cluster moves the horizon; then the runs' news are asked for as well.
  expect(statements.filter((sql) => !/as horizon|from event/.test(sql))).toEqual([]);
  await end();
});
