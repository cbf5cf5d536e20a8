/** `capstan recover`: after a restore of the database, what it holds goes on, with a Temporal that may be empty. */
import type { Config } from '../config.ts';
import { type RecoveryOptions, recoverFromRestore, type WholeRecovery } from '../runtime/recovery.ts';

export type { WholeFindings, WholeRecovery } from '../runtime/recovery.ts';

export function runRecovery(settings: Config, options: RecoveryOptions): Promise<WholeRecovery> {
  return recoverFromRestore(settings, options);
}
