import { open } from 'node:fs/promises';
import type { Command } from 'commander';
import { UsageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { createPrinter } from '../render/print.ts';
import { describeFindings, describeRecovery, isWhole } from '../render/recovery-lines.ts';
import type { Shell } from '../shell.ts';

interface RecoverFlags {
  readonly restartAll: boolean;
  readonly audit?: string;
  readonly envFile?: string;
  readonly json: boolean;
}

/** Of a file that may be large. @throws UsageError when there is none */
async function readLines(file: string): Promise<AsyncIterable<string>> {
  const handle = await open(file).catch((thrown: unknown) => {
    throw new UsageError(`${file} cannot be read: ${thrown instanceof Error ? thrown.message : thrown}`);
  });
  return handle.readLines();
}

async function runRecover(flags: RecoverFlags, shell: Shell): Promise<void> {
  const { checkSettings, readEnvFile } = await import('../process/process-settings.ts');
  const { translateFault } = await import('../process/become-process.ts');
  const { runRecovery } = await import('../../upkeep/recover.ts');
  const { environment } = shell;
  const settings = checkSettings({ ...readEnvFile(flags.envFile, environment), ...environment });
  const print = createPrinter(shell);
  try {
    const report = await runRecovery(settings, {
      restartsAll: flags.restartAll,
      auditLines: flags.audit === undefined ? undefined : await readLines(flags.audit),
      onFound: (found) => {
        for (const line of describeFindings(found)) (flags.json ? print.remark : print.line)(line);
      },
    });
    print.lines(flags.json ? [JSON.stringify(report)] : describeRecovery(report));
    if (!isWhole(report)) shell.exitWith(exitCodes.failed);
  } catch (thrown) {
    throw translateFault(thrown, settings.DATABASE_URL);
  }
}

/** `capstan recover`: after a restore, before servers and workers start. */
export function registerRecoverCommand(program: Command, shell: Shell): void {
  program
    .command('recover')
    .description(
      'after a restore of the database: start what Temporal no longer knows, and say what may happen twice; may be repeated',
    )
    .option(
      '--restart-all',
      'delete the workflows of all open runs in Temporal first: for a Temporal that is newer than the database',
      false,
    )
    .option(
      '--audit <file>',
      'the audit log that was kept elsewhere, from `audit export` or the logs of servers: name the keys that were made, revoked or rotated after the backup, and revoke those again',
    )
    .option('--env-file <file>', 'variables for what the environment leaves open')
    .option(
      '--json',
      'print what was found and done as JSON at the end; what was found goes to stderr as text at once',
      false,
    )
    .action((flags: RecoverFlags) => runRecover(flags, shell));
}
