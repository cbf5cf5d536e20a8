/**
 * One pass of deleting what is too old, and what it has counted so far.
 *
 * What is about to be deleted, as files of JSON lines in a folder: `{"table": …, "row": …}`. A file is whole and
 * on the disk before its rows go; of rows that stayed, because the process died in between or something was in
 * their way, another file tells again.
 */

import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Db } from '../../db/connect.ts';
import type { BatchMode, DeletedBatch } from '../../db/deletion/deleted-batch.ts';
import type { MediaLibrary } from '../media/media-library.ts';

/** Rows that went, or would go, by table; and files. */
export type PurgeCounts = Record<string, number>;

export interface PurgePass {
  readonly db: Db;
  readonly media: Pick<MediaLibrary, 'deleteJob'>;
  readonly exportTo: PurgeExport | null;
  /** Nothing is deleted, only counted. */
  readonly isTrial: boolean;
  /** Of each kind of work; what is left is for the next pass. */
  readonly mostBatches: number;
  readonly isStopping: () => boolean;
  readonly counts: PurgeCounts;
}

export function count(counts: PurgeCounts, added: Readonly<Record<string, number>>): void {
  for (const [table, rows] of Object.entries(added)) counts[table] = (counts[table] ?? 0) + rows;
}

export interface PurgeExport {
  /** Resolves when the lines are on the disk, in a file of their own. None: no file. */
  write(lines: AsyncIterable<string> | Iterable<string>): Promise<void>;
}

/** @param now names the files, so that they stand in order */
export async function createPurgeExport(folder: string, now = () => new Date()): Promise<PurgeExport> {
  await mkdir(folder, { recursive: true });
  let count = 0;
  return {
    write: async (lines) => {
      const name = `purge-${now().toISOString().replaceAll(':', '-')}-${process.pid}-${count++}.ndjson`;
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

/** Deletes rows by a statement that tells them, and commits it when they are on the disk (P4). */
export function deleteTold(
  { db, exportTo, isTrial }: PurgePass,
  work: (trx: Db, mode: BatchMode) => Promise<DeletedBatch>,
): Promise<DeletedBatch> {
  if (exportTo === null || isTrial) return work(db, { isTrial, isTold: false });
  return db.transaction(async (trx) => {
    const batch = await work(trx, { isTrial, isTold: true });
    await exportTo.write(batch.lines);
    return batch;
  });
}

/** Does one thing after the other, each whatever became of those before it. @throws the first fault, after the last one */
export async function takeTurns(works: readonly (() => Promise<void>)[]): Promise<void> {
  const faults: unknown[] = [];
  for (const work of works) {
    await work().catch((fault: unknown) => {
      faults.push(fault);
    });
  }
  if (faults.length > 0) throw faults[0];
}
