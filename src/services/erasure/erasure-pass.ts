/** One erasure as far as a round of maintenance goes on with it. */
import type { Logger } from 'pino';
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import type { TemporalSchedules } from '../../clients/temporal/schedules.ts';
import type { Db } from '../../db/connect.ts';
import { type OpenErasure, saveProgress } from '../../db/erasure/erasure.ts';
import type { MediaLibrary } from '../media/media-library.ts';

export interface EraseDependencies {
  readonly db: Db;
  readonly workflows: Pick<
    RunWorkflows,
    'erase' | 'eraseLadder' | 'eraseStart' | 'eraseSchedule' | 'eraseProject'
  >;
  readonly schedules: Pick<TemporalSchedules, 'remove'>;
  readonly media: Pick<MediaLibrary, 'deleteJob' | 'directUploadMs'>;
  readonly logger: Logger;
  /** Nothing that a trusted key has begun goes on for longer without being seen. */
  readonly quietMs?: number;
}

export interface ErasurePass extends EraseDependencies {
  readonly quietMs: number;
  /** The process ends. */
  readonly isStopping: () => boolean;
  /** It is another erasure's turn, or the process ends. */
  readonly isOver: () => boolean;
  readonly erasure: OpenErasure;
  attemptsAfter: string;
  readonly deleted: Record<string, number>;
}

/** Adds to what has gone. @param db where it went */
export async function count(
  pass: ErasurePass,
  added: Readonly<Record<string, number>>,
  db: Db = pass.db,
): Promise<void> {
  const { deleted, erasure, attemptsAfter } = pass;
  for (const [table, rows] of Object.entries(added))
    if (rows > 0) deleted[table] = (deleted[table] ?? 0) + rows;
  await saveProgress(db, { ...erasure, deleted, attempts_after: attemptsAfter });
}

/** Temporal is asked of so many at once. */
const atOnce = 8;

/** Those of which it holds, in their order. */
export async function filterOf<Item>(
  items: readonly Item[],
  holds: (item: Item) => Promise<boolean>,
): Promise<Item[]> {
  const found: Item[] = [];
  for (let at = 0; at < items.length; at += atOnce) {
    const some = items.slice(at, at + atOnce);
    const answers = await Promise.all(some.map(holds));
    found.push(...some.filter((_, index) => answers[index]));
  }
  return found;
}
