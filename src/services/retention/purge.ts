/**
 * Deletes what is older than it has to be kept. Work goes in batches that are committed each, oldest first, so that a
 * backlog of any size shrinks beside other work, and a process that ends in between has lost nothing. Invariants:
 *
 * P1 A run that has not ended, one below or above it, and one that it repeats lose no row.
 * P2 Budgets of days, the ledger and the audit log do not change when runs go.
 * P3 No transaction is open while files are deleted. The row of their job has gone by then, with a mark that stays until they
 *    are deleted: what was begun is found again, and nothing new names them.
 * P4 With an export, nothing is deleted that is not on the disk there.
 * P5 What cannot go keeps nothing else from going.
 */
import { purgeBooks } from './purge-books.ts';
import { purgeOldChoices } from './purge-choices.ts';
import { finishLeavingJobs, purgeJobs } from './purge-jobs.ts';
import { purgeLooseRows } from './purge-loose-rows.ts';
import type { PurgeCounts, PurgePass } from './purge-pass.ts';
import { dropEmptyLogs, purgeRuns } from './purge-runs.ts';
import { takeTurns } from './take-turns.ts';

/** For how many days things are kept after their end; null = for ever. */
export interface Retention {
  /** Runs with all that is theirs, calls and ladders by themselves, jobs and their files. */
  readonly runDays: number | null;
  /** What choices of instances were made from. */
  readonly choiceDays: number | null;
  /** Ledger and audit log. */
  readonly bookDays: number | null;
}

export type PurgeOptions = Pick<PurgePass, 'db' | 'media'> & {
  readonly retention: Retention;
  readonly now?: Date;
} & Partial<Pick<PurgePass, 'exportTo' | 'isTrial' | 'mostBatches' | 'isStopping'>>;

const dayMs = 86_400_000;

/** @throws the first fault, when all else was tried (P5) */
export async function purge({ retention, now = new Date(), ...options }: PurgeOptions): Promise<PurgeCounts> {
  const { db, media, exportTo = null, isTrial = false } = options;
  const { mostBatches = Number.POSITIVE_INFINITY, isStopping = () => false } = options;
  const pass: PurgePass = { db, media, exportTo, isTrial, mostBatches, isStopping, counts: {} };
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
