/**
 * Deletes data whose retention is over. Work is done in batches, each committed, oldest first. So a backlog of any size
 * shrinks beside other work, and a process that ends in between has lost nothing.
 * Invariants:
 *
 * P1 A run that has not ended, its ancestors and descendants, and a run that it repeats lose no row.
 * P2 Budgets of days, the ledger and the audit log do not change when runs are deleted.
 * P3 No transaction is open while files are deleted. By then the row of their job is deleted, with a mark that stays
 * until the files are: unfinished work is found again, and nothing new names them.
 * P4 With an export, only exported rows on its disk are deleted.
 * P5 A row that cannot be deleted does not keep others from being deleted.
 *
 * A week or a month is dropped as a partition; an export has its rows before, one by one (P4).
 */

import type { Ctx } from '../../context.ts';
import { deletedTables } from '../../db/deletion/deleted-tables.ts';
import {
  type Book,
  countOld,
  countPart,
  hasOpenChoices,
  listBookLines,
  listOldParts,
  listPartLines,
  purgeBook,
  purgeChoices,
} from '../../db/deletion/old-rows.ts';
import { dropPart, isFree, leastId, type TablePart } from '../../db/partitions.ts';
import {
  count,
  type DeletedCounts,
  deleteInBatches,
  emptyTable,
  type PurgePass,
  takeTurns,
} from './deletion-pass.ts';
import { finishLeavingJobs, purgeJobs } from './purge-jobs.ts';
import { dropEmptyLogs, purgeRuns } from './purge-runs.ts';

type WholePart = 'attempt_choice' | 'ledger_entry';

/**
 * Drops partitions of a table until one is locked: its holder probably locks all of them, and a statement that waits
 * for a partition makes others wait. The next pass drops the rest.
 */
async function purgeParts(pass: PurgePass, table: WholePart, parts: readonly TablePart[]): Promise<void> {
  const faults: unknown[] = [];
  for (const part of parts) {
    if (pass.isStopping()) break;
    const isDone = await purgePart(pass, table, part).catch((fault: unknown) => faults.push(fault) > 0);
    if (!isDone) break;
  }
  if (faults.length > 0) throw faults[0];
}

/** Drops a partition whose time is over. False while it is locked, or when the pass was stopped. */
async function purgePart(pass: PurgePass, table: WholePart, part: TablePart): Promise<boolean> {
  const { db, isTrial, exportTo } = pass;
  const rows = exportTo === null ? await countPart(db, part) : await exportPart(pass, table, part);
  if (rows === null) return false;
  if (!isTrial && !(await dropPart(db, part))) return false;
  await count(pass, { [table]: rows });
  return true;
}

/** @returns how many rows; null: the partition is locked, or the pass was stopped before the last row */
async function exportPart(
  { db, exportTo, isStopping }: PurgePass,
  table: WholePart,
  part: TablePart,
): Promise<number | null> {
  let rows = 0;
  async function* tellAll(): AsyncGenerator<string> {
    for await (const line of listPartLines(db, table, part)) {
      if (isStopping()) return;
      rows += 1;
      yield line;
    }
  }
  if (!(await isFree(db, part))) return null;
  await exportTo?.write(tellAll());
  return isStopping() ? null : rows;
}

const rowsAtOnce = 1_000;
const books: readonly Book[] = ['ledger_entry', 'audit'];

/**
 * The oldest entries of the ledger and the audit log. The ledger is partitioned by month, and months are dropped whole.
 */
async function purgeBooks(pass: PurgePass, before: Date): Promise<void> {
  await takeTurns([
    () => purgeMonths(pass, before),
    ...books.map((book) => () => purgeEntries(pass, book, before)),
  ]);
}

async function purgeMonths(pass: PurgePass, before: Date): Promise<void> {
  await purgeParts(pass, 'ledger_entry', await listOldParts(pass.db, 'ledger_entry', before));
}

async function purgeEntries(pass: PurgePass, book: Book, before: Date): Promise<void> {
  if (pass.isTrial) return count(pass, { [book]: await countOld(pass.db, book, before) });
  for (let batch = 0; batch < pass.mostBatches && !pass.isStopping(); batch++) {
    const deleted = await purgeOldest(pass, book, before);
    await count(pass, { [book]: deleted });
    if (deleted < rowsAtOnce) return;
  }
}

/** Uses one snapshot, so that exactly the exported rows are deleted; a concurrent delete of the same rows fails it. */
function purgeOldest({ db, exportTo }: PurgePass, book: Book, before: Date): Promise<number> {
  const batch = { before, most: rowsAtOnce };
  if (exportTo === null) return purgeBook(db, book, batch);
  return db.transaction(
    async (trx) => {
      await exportTo.write(await listBookLines(trx, book, batch));
      return purgeBook(trx, book, batch);
    },
    { isolationLevel: 'repeatable read' },
  );
}

/** Deletes decision inputs: by whole weeks where no open run has one in the week, otherwise one by one. */
function purgeOldChoices(pass: PurgePass, before: Date): Promise<void> {
  return takeTurns([() => purgeWeeks(pass, before), () => purgeOneByOne(pass, before)]);
}

async function purgeWeeks(pass: PurgePass, before: Date): Promise<void> {
  const { db, isTrial } = pass;
  const weeks = isTrial ? [] : await listOldParts(db, 'attempt_choice', before);
  const free: TablePart[] = [];
  for (const week of weeks) if (!(await hasOpenChoices(db, week))) free.push(week);
  await purgeParts(pass, 'attempt_choice', free);
}

async function purgeOneByOne(pass: PurgePass, before: Date): Promise<void> {
  const upTo = leastId('att', before);
  await deleteInBatches(pass, (db, order) => purgeChoices(db, { ...order, upTo }));
}

/** Calls without a run, ladders without a step, and reviews that no run opened. */
function purgeLooseRows(pass: PurgePass, endedBefore: Date): Promise<void> {
  return takeTurns(deletedTables.map((row) => () => emptyTable(pass, row, { endedBefore })));
}

/** For how many days things are kept after their end; null = for ever. */
export interface Retention {
  /** Runs with all their rows, calls and ladders without a run, jobs and their files. */
  readonly runDays: number | null;
  /** Days for which decision inputs are kept; null = for ever. */
  readonly choiceDays: number | null;
  /** Ledger and audit log. */
  readonly bookDays: number | null;
}

export type PurgeCtx = Pick<Ctx, 'db'> & Pick<PurgePass, 'media'>;

export type PurgeOptions = Partial<Pick<PurgePass, 'exportTo' | 'isTrial' | 'mostBatches' | 'isStopping'>> & {
  readonly retention: Retention;
  readonly now?: Date;
};

const dayMs = 86_400_000;

/** @throws the first fault, after everything else was tried (P5) */
export async function purge(
  { db, media }: PurgeCtx,
  { retention, now = new Date(), exportTo = null, isTrial = false, ...options }: PurgeOptions,
): Promise<DeletedCounts> {
  const { mostBatches = Number.POSITIVE_INFINITY, isStopping = () => false } = options;
  const limits = { exportTo, isTrial, mostBatches, isStopping, isOver: isStopping };
  const pass: PurgePass = { db, media, ...limits, counts: {}, erasure: null };
  const before = (days: number): Date => new Date(now.getTime() - days * dayMs);
  const { runDays, choiceDays, bookDays } = retention;
  const works = [
    ...(runDays === null ? [() => finishLeavingJobs(pass)] : worksOfRuns(pass, before(runDays))),
    ...(choiceDays === null ? [] : [() => purgeOldChoices(pass, before(choiceDays))]),
    ...(bookDays === null ? [] : [() => purgeBooks(pass, before(bookDays))]),
  ];
  await takeTurns(works);
  return pass.counts;
}

function worksOfRuns(pass: PurgePass, endedBefore: Date): readonly (() => Promise<void>)[] {
  const works = [purgeRuns, purgeLooseRows, purgeJobs, dropEmptyLogs];
  return works.map((work) => () => work(pass, endedBefore));
}
