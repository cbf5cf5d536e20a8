import type { Command } from 'commander';
import { formatCounts } from '../render/row-counts.ts';
import type { Shell } from '../shell.ts';

interface PurgeFlags {
  readonly dryRun: boolean;
  readonly export?: string;
  readonly envFile?: string;
  readonly json: boolean;
}

function print({ stdout }: Shell, counts: Readonly<Record<string, number>>, isTrial: boolean): void {
  const lines = formatCounts(counts);
  if (lines.length === 0) stdout.write('nothing is older than it is kept\n');
  else stdout.write(isTrial ? 'would be deleted:\n' : 'deleted:\n');
  for (const line of lines) stdout.write(`${line}\n`);
}

async function runPurgeCommand(flags: PurgeFlags, shell: Shell): Promise<void> {
  const { checkSettings, readEnvFile } = await import('../process/process-settings.ts');
  const { translateFault } = await import('../process/become-process.ts');
  const { runPurge } = await import('../../upkeep/purge.ts');
  const { environment, stdout } = shell;
  const settings = checkSettings({ ...readEnvFile(flags.envFile, environment), ...environment });
  const { dryRun: isTrial, export: exportDir } = flags;
  try {
    const counts = await runPurge(settings, { exportDir, isTrial });
    if (flags.json) stdout.write(`${JSON.stringify(counts)}\n`);
    else print(shell, counts, isTrial);
  } catch (thrown) {
    throw translateFault(thrown, settings.DATABASE_URL);
  }
}

/** `capstan purge`: the retention, now. It works on the database, so no server has to run. */
export function registerPurgeCommand(program: Command, shell: Shell): void {
  program
    .command('purge')
    .description(
      'delete what is older than RUN_, CHOICE_ and LEDGER_RETENTION_DAYS allow; works on DATABASE_URL and MEDIA_URL, no server has to run',
    )
    .option('--dry-run', 'only say what would be deleted', false)
    .option('--export <dir>', 'first write what is deleted into this folder, as files of JSON lines')
    .option('--env-file <file>', 'variables for what the environment leaves open')
    .option('--json', 'print the counts as JSON', false)
    .action((flags: PurgeFlags) => runPurgeCommand(flags, shell));
}
