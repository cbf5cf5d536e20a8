/** `capstan recover`: after a restore of the database, what it holds goes on, with a Temporal that may be empty. */
import type { Config } from '../config.ts';
import { recoverFromRestore, type WholeRecovery } from '../runtime/recovery.ts';

export type { WholeRecovery } from '../runtime/recovery.ts';

export function runRecovery(
  settings: Config,
  options: { readonly restartsAll: boolean },
): Promise<WholeRecovery> {
  return recoverFromRestore(settings, options);
}
