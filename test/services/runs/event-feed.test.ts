import { expect, test } from 'vitest';
import { CancelSource } from '../../../src/core/cancellation.ts';
import { createEventFeed } from '../../../src/services/runs/event-feed.ts';
import { useDatabase } from '../../support/database.ts';
import { aRun } from '../../support/factories.ts';
import { waitFor } from '../../support/wait.ts';
import { silentLogger } from '../registry/registry-bench.ts';

const { db } = useDatabase(4);

test('a watcher that reads slowly misses nothing, and little waits for it', async () => {
  const { run_id } = await aRun(db);
  const feed = createEventFeed({ db, intervalMs: 20, logger: silentLogger });
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
    await waitFor('the feed to look', () => polls.count > before + 1, 30_000);
  }
  const seqs = [(await second).value?.seq];
  while (seqs.length < 2_400) seqs.push((await events.next()).value?.seq);
  expect(seqs).toEqual(Array.from({ length: 2_400 }, (_, n) => n + 2));
  stop.abort('gone');
  expect((await events.next()).done).toBe(true);
  feed.stop();
});
