/** `capstan recover`: after a restore of the database, what it holds goes on, with a Temporal that may be empty. */
import type { Config } from '../config.ts';
import { type RecoveryOptions, recoverFromRestore, type WholeRecovery } from '../runtime/maintenance.ts';
import { readKeyActs } from '../services/recovery/lost-acts.ts';

export type { WholeFindings, WholeRecovery } from '../runtime/maintenance.ts';

export interface RecoveryOrder extends Omit<RecoveryOptions, 'keyActs'> {
  /** Of an audit log that was kept elsewhere: what `capstan audit export` printed, or logs of servers. */
  readonly auditLines?: AsyncIterable<string> | undefined;
}

/** @throws AppError `request_invalid` for lines without an entry, before anything is done */
export async function runRecovery(
  settings: Config,
  { auditLines, ...options }: RecoveryOrder,
): Promise<WholeRecovery> {
  if (auditLines === undefined) return recoverFromRestore(settings, options);
  return recoverFromRestore(settings, { ...options, keyActs: await readKeyActs(auditLines) });
}
