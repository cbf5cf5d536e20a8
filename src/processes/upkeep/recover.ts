/** `capstan recover`: resumes the work in a restored database, with a Temporal that may be empty. */
import type { Config } from '../../config.ts';
import { readKeyActs } from '../../use-cases/recovery/lost-acts.ts';
import { type RecoveryOptions, recoverFromRestore, type WholeRecovery } from '../maintenance.ts';

export type { WholeFindings, WholeRecovery } from '../maintenance.ts';

export interface RecoveryOrder extends Omit<RecoveryOptions, 'keyActs'> {
  /** Lines of an audit log kept elsewhere: output of `capstan audit export`, or server logs. */
  readonly auditLines?: AsyncIterable<string> | undefined;
}

/** @throws AppError `request_invalid` for lines without an entry, before anything changes */
export async function runRecovery(
  settings: Config,
  { auditLines, ...options }: RecoveryOrder,
): Promise<WholeRecovery> {
  if (auditLines === undefined) return recoverFromRestore(settings, options);
  return recoverFromRestore(settings, { ...options, keyActs: await readKeyActs(auditLines) });
}
