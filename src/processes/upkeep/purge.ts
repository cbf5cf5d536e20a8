/** `capstan purge`: deletes on demand the rows that maintenance deletes by schedule, even if no server can start. */
import type { Config } from '../../config.ts';
import { purgeByHand } from '../maintenance.ts';

export interface PurgeOrder {
  /** Default: `PURGE_EXPORT_DIR`. */
  readonly exportDir?: string | undefined;
  readonly isTrial: boolean;
}

export function runPurge(
  settings: Config,
  { exportDir, isTrial }: PurgeOrder,
): Promise<Readonly<Record<string, number>>> {
  return purgeByHand(settings, { exportDir: exportDir ?? settings.PURGE_EXPORT_DIR, isTrial });
}
