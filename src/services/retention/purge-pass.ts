/** One pass of deleting what is too old, and what it has counted so far. */

import type { Db } from '../../db/connect.ts';
import type { MediaLibrary } from '../media/media-library.ts';
import type { PurgeExport } from './purge-export.ts';

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
