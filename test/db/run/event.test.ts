import fc from 'fast-check';
import type { Knex } from 'knex';
import { describe, expect, it } from 'vitest';
import {
  confirmPosition,
  type EventRow,
  type LogPosition,
  listEvents,
  listNewEvents,
  type NumberedEventRow,
  readHorizon,
} from '../../../src/db/run/event.ts';
import { useDatabase } from '../../support/database.ts';
import { aRun } from '../../support/factories.ts';
import { runs } from '../../support/runs.ts';
import { waitFor } from '../../support/wait.ts';

const { db } = useDatabase(8);

function write(trx: Knex, run_id: string, name: string): Promise<unknown> {
  return trx('event').insert({ run_id, type: 'step.routed', step_id: name });
}

function nameOf({ type, step_id }: Pick<EventRow, 'type' | 'step_id'>): string {
  return step_id ?? type;
}

/** What a reader sees now, as `number name`. */
async function readLog(runId: string, after = 0, limit = 1_000): Promise<string[]> {
  return (await listEvents(db, runId, { before: null, after, limit })).map(
    (row) => `${row.seq} ${nameOf(row)}`,
  );
}

/** Other databases of the server hold the horizon back too. */
async function readLogOf(runId: string, events: number): Promise<string[]> {
  await waitFor(`${events} events`, async () => (await readLog(runId)).length === events);
  return readLog(runId);
}

describe('the log of a run', () => {
  it('shows nothing behind the oldest open transaction, then everything in the order of transactions', async () => {
    const { run_id } = await aRun(db);
    await readLogOf(run_id, 1);
    const [first, second, third] = [await db.transaction(), await db.transaction(), await db.transaction()];
    for (const [at, trx] of [first, second, third].entries()) await write(trx, run_id, `t${at + 1}`);
    await write(second, run_id, 't2-again');
    await third.commit();
    expect(await readLog(run_id)).toEqual(['1 run.queued']);
    await second.commit();
    expect(await readLog(run_id)).toEqual(['1 run.queued']);
    await first.rollback();
    expect(await readLogOf(run_id, 4)).toEqual(['1 run.queued', '2 t2', '3 t2-again', '4 t3']);
    expect(await readLog(run_id, 1, 2)).toEqual(['2 t2', '3 t2-again']);
    expect(await readLog(run_id, 4)).toEqual([]);
  });

  it('orders transactions by number, also where the numbers gain a digit', async () => {
    const { run_id } = await aRun(db);
    for (const xid of ['10', '9', '100']) {
      await db('event').insert({ run_id, xid, type: 'step.routed', step_id: xid });
    }
    expect((await readLogOf(run_id, 4)).slice(0, 3)).toEqual(['1 9', '2 10', '3 100']);
    expect((await listNewEvents(db, [run_id], { from: '9', to: '101' })).map(nameOf)).toEqual([
      '9',
      '10',
      '100',
    ]);
  });

  it('is read on from a place in it, and from the number where the place is there no more', async () => {
    const { run_id } = await aRun(db);
    for (const name of ['a', 'b', 'c']) await write(db, run_id, name);
    await readLogOf(run_id, 4);
    const [, second] = await listEvents(db, run_id, { before: null, after: 0, limit: 2 });
    const { seq, xid, id } = second as NumberedEventRow;
    const rest = async (after: LogPosition) =>
      (await listEvents(db, run_id, { before: null, after, limit: 10 })).map(
        (row) => `${row.seq} ${nameOf(row)}`,
      );
    expect(await rest({ seq, xid, id })).toEqual(['3 b', '4 c']);
    expect(await confirmPosition(db, run_id, { seq, xid, id })).toEqual({ seq, xid, id });
    expect(await confirmPosition(db, run_id, { seq, xid: '1', id: '1' })).toEqual({ seq, xid, id });
  });

  it('is numbered by run', async () => {
    const runs = [await aRun(db), await aRun(db)];
    for (const name of ['x', 'y']) for (const { run_id } of runs) await write(db, run_id, name);
    for (const { run_id } of runs) expect(await readLogOf(run_id, 3)).toEqual(['1 run.queued', '2 x', '3 y']);
  });
});

/** `w2` is a write of transaction 2, `c2` its commit; a transaction begins with its first write. */
const anyInterleaving = fc
  .array(fc.record({ writes: fc.integer({ min: 1, max: 3 }) }), { minLength: 2, maxLength: 5 })
  .map((list) => list.flatMap(({ writes }, at) => [...Array(writes).fill(`w${at}`), `c${at}`]))
  .chain((moves) => fc.tuple(fc.constant(moves), fc.shuffledSubarray(moves, { minLength: moves.length })))
  .map(([, shuffled]) => {
    const last = new Map(shuffled.map((move, at) => [move.slice(1), at]));
    const isLast = (move: string, at: number) => last.get(move.slice(1)) === at;
    return shuffled.map((move, at) => `${isLast(move, at) ? 'c' : 'w'}${move.slice(1)}`);
  });

/** Plays an interleaving and reads after every move, as a page and as a feed that goes from horizon to horizon. */
async function play(run_id: string, moves: readonly string[]) {
  const open = new Map<string, Knex.Transaction>();
  const pages: string[][] = [];
  const fed: string[] = [];
  let horizon = await readHorizon(db);
  const read = async (): Promise<void> => {
    const next = await readHorizon(db);
    fed.push(...(await listNewEvents(db, [run_id], { from: horizon, to: next })).map(nameOf));
    horizon = next;
    pages.push(await readLog(run_id));
  };
  for (const [at, move] of moves.entries()) {
    const name = move.slice(1);
    const trx = open.get(name) ?? (await db.transaction());
    open.set(name, trx);
    await write(trx, run_id, `${at}`);
    if (move.startsWith('c')) {
      await trx.commit();
      open.delete(name);
    }
    await read();
  }
  await waitFor('the last event', async () => {
    await read();
    return fed.length === moves.length;
  });
  return { pages, fed };
}

describe('readers of the log', () => {
  it('never see a number change its event, and a feed brings what the pages show, once', async () => {
    await fc.assert(
      fc.asyncProperty(anyInterleaving, async (moves) => {
        const { run_id } = await aRun(db);
        await readLogOf(run_id, 1);
        const { pages, fed } = await play(run_id, moves);
        const last = pages.at(-1) as string[];
        for (const page of pages) expect(page).toEqual(last.slice(0, page.length));
        expect(last).toEqual(['run.queued', ...fed].map((name, at) => `${at + 1} ${name}`));
        expect(fed.toSorted()).toEqual([...moves.keys()].map(String).toSorted());
      }),
      { numRuns: runs(6) },
    );
  });
});
