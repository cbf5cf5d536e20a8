import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { connectDatabase, type Db } from '../db/connect.ts';
import type { MediaLibrary } from '../services/media/media-library.ts';
import { type PurgeOptions, purge, type Retention } from '../services/retention/purge.ts';
import { createPurgeExport, type PurgeExport } from '../services/retention/purge-export.ts';
import type { PurgeCounts } from '../services/retention/purge-pass.ts';
import { createMedia } from './media.ts';

type RetentionSettings = Pick<
  Config,
  'RUN_RETENTION_DAYS' | 'CHOICE_RETENTION_DAYS' | 'LEDGER_RETENTION_DAYS'
>;

function toDays(setting: 'never' | number): number | null {
  return setting === 'never' ? null : setting;
}

function retentionOf(config: RetentionSettings): Retention {
  return {
    runDays: toDays(config.RUN_RETENTION_DAYS),
    choiceDays: toDays(config.CHOICE_RETENTION_DAYS),
    bookDays: toDays(config.LEDGER_RETENTION_DAYS),
  };
}

function exportTo(folder: string | undefined): Promise<PurgeExport | null> {
  return folder === undefined ? Promise.resolve(null) : createPurgeExport(folder);
}

/** Of a round of maintenance: two hundred thousand runs. What is left is for the next. */
const batchesOfRound = 200;

interface DutyTools {
  readonly db: Db;
  readonly media: Pick<MediaLibrary, 'deleteJob'>;
  readonly logger: Logger;
}

/** @returns what maintenance does by the clock */
export function createPurgeDuty(config: Config, { db, media, logger }: DutyTools) {
  return async (isStopping: () => boolean): Promise<number> => {
    const options: PurgeOptions = { db, media, retention: retentionOf(config), mostBatches: batchesOfRound };
    const copy = await exportTo(config.PURGE_EXPORT_DIR);
    const counts = await purge({ ...options, exportTo: copy, isStopping });
    const rows = Object.values(counts).reduce((sum, count) => sum + count, 0);
    if (rows > 0) logger.info({ counts }, 'deleted what was older than it is kept');
    return rows;
  };
}

/** A statement may take a minute: nobody waits for the one who deletes by hand. */
const statementMs = 60_000;

/** Everything that is too old, at once, also where no server can start: the schema is taken as it is. */
export async function purgeByHand(
  config: Config,
  { exportDir, isTrial }: { readonly exportDir: string | undefined; readonly isTrial: boolean },
): Promise<PurgeCounts> {
  const db = connectDatabase(config.DATABASE_URL, 4, statementMs);
  try {
    const { library: media } = await createMedia(config, db);
    const copy = isTrial ? null : await exportTo(exportDir);
    return await purge({ db, media, retention: retentionOf(config), isTrial, exportTo: copy });
  } finally {
    await db.destroy();
  }
}
