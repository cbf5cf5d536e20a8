/**
 * One pass of deleting, by age or by project, with its counts so far. Each batch is committed by itself.
 *
 * The export writes the rows that are about to be deleted to files of JSON lines in a folder: `{"table": …, "row": …}`.
 * A file is complete and on the disk before its rows are deleted. Rows that stayed, because the process died in between
 * or a reference kept them, are in a later file again.
 */

import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Db } from '../../db/connect.ts';
import {
  type BatchMode,
  type DeletedBatch,
  type DeletedTable,
  deleteOfProject,
  deleteOld,
} from '../../db/deletion/deleted-tables.ts';
import { type OpenErasure, saveProgress } from '../../db/deletion/erasure.ts';
import { boundsOfIds } from '../../parts/ids.ts';
import type { MediaLibrary } from '../../parts/media/media-library.ts';

/** Deleted rows, or rows that would be deleted, by table; and files. */
export type DeletedCounts = Record<string, number>;

export interface DeletionPass {
  readonly db: Db;
  readonly exportTo: PurgeExport | null;
  /** Nothing is deleted, only counted. */
  readonly isTrial: boolean;
  /** The most batches of each kind of work; the next pass does the rest. */
  readonly mostBatches: number;
  /** The process is shutting down. */
  readonly isStopping: () => boolean;
  /** Another pass has its turn, or the process is shutting down. */
  readonly isOver: () => boolean;
  readonly counts: DeletedCounts;
  /** The project whose rows are deleted; null: deletes by age. */
  erasure: OpenErasure | null;
}

/** Deletes by age. */
export interface PurgePass extends DeletionPass {
  readonly media: Pick<MediaLibrary, 'deleteJob'>;
  readonly erasure: null;
}

/** Adds to the counts, and stores the progress of an erasure. @param db where the rows were deleted */
export async function count(
  { counts, erasure, db: own }: Pick<DeletionPass, 'counts' | 'erasure' | 'db'>,
  added: Readonly<Record<string, number>>,
  db: Db = own,
): Promise<void> {
  for (const [table, rows] of Object.entries(added))
    if (rows > 0 || erasure === null) counts[table] = (counts[table] ?? 0) + rows;
  if (erasure !== null) await saveProgress(db, { ...erasure, deleted: counts });
}

export interface PurgeExport {
  /** Resolves when the lines are on the disk, in a file of their own. No lines: no file. */
  write(lines: AsyncIterable<string> | Iterable<string>): Promise<void>;
}

/** Files are named by the time, so that they sort by it. */
export async function createPurgeExport(folder: string): Promise<PurgeExport> {
  await mkdir(folder, { recursive: true });
  let count = 0;
  return {
    write: async (lines) => {
      const name = `purge-${new Date().toISOString().replaceAll(':', '-')}-${process.pid}-${count++}.ndjson`;
      let file: FileHandle | undefined;
      try {
        for await (const line of lines) {
          file ??= await open(join(folder, name), 'wx', 0o600);
          await file.appendFile(`${line}\n`);
        }
        await file?.sync();
      } finally {
        await file?.close();
      }
    },
  };
}

/** Deletes rows by a statement that returns them, and commits when they are on the disk (P4). */
function deleteTold(
  { db, exportTo, isTrial }: DeletionPass,
  work: (trx: Db, mode: BatchMode) => Promise<DeletedBatch>,
): Promise<DeletedBatch> {
  if (exportTo === null || isTrial) return work(db, { isTrial, isTold: false });
  return db.transaction(async (trx) => {
    const batch = await work(trx, { isTrial, isTold: true });
    await exportTo.write(batch.lines);
    return batch;
  });
}

const rowsAtOnce = 1_000;

interface BatchOrder extends BatchMode {
  /** The position after the last batch. */
  readonly after: string;
  readonly limit: number;
}

/** Deletes batch after batch, until no row is left or the pass is over. */
export async function deleteInBatches(
  pass: DeletionPass,
  work: (trx: Db, order: BatchOrder) => Promise<DeletedBatch>,
): Promise<void> {
  let after: string | null = '';
  for (let batch = 0; batch < pass.mostBatches && after !== null && !pass.isOver(); batch++) {
    const from: string = after;
    const { counts, place } = await deleteTold(pass, (trx, mode) =>
      work(trx, { ...mode, after: from, limit: rowsAtOnce }),
    );
    await count(pass, counts);
    after = place;
  }
}

/** Rows that ended before a moment, or all of a project. */
type DeletedRows = { readonly endedBefore: Date } | { readonly projectId: string };

/** Deletes them from a table, if its rows are deleted on their own. */
export async function emptyTable(pass: DeletionPass, row: DeletedTable, rows: DeletedRows): Promise<void> {
  const { old, ofProject } = row;
  if ('projectId' in rows) {
    if (ofProject === undefined) return;
    const { projectId } = rows;
    await deleteInBatches(pass, (db, { limit }) => deleteOfProject(db, row, { projectId, limit }));
  } else if (old !== undefined) {
    const { endedBefore } = rows;
    const upTo = boundsOfIds(old.kind, endedBefore, endedBefore)[1];
    await deleteInBatches(pass, (db, order) => deleteOld(db, row, { ...order, endedBefore, upTo }));
  }
}

/** Runs one task after the other, whatever the result of earlier ones. @throws the first fault, after the last task */
export async function takeTurns(works: readonly (() => Promise<void>)[]): Promise<void> {
  const faults: unknown[] = [];
  for (const work of works) {
    await work().catch((fault: unknown) => {
      faults.push(fault);
    });
  }
  if (faults.length > 0) throw faults[0];
}
