import type { Command } from 'commander';
import type { WholeRecovery } from '../../upkeep/recover.ts';
import { exitCodes } from '../exit-codes.ts';
import { createPrinter } from '../render/print.ts';
import type { Shell } from '../shell.ts';

interface RecoverFlags {
  readonly restartAll: boolean;
  readonly envFile?: string;
  readonly json: boolean;
}

const shownCalls = 20;

function describeDatabase({ other_cluster, last_at, ...report }: WholeRecovery): string[] {
  const ahead =
    other_cluster === null
      ? []
      : [
          `the database comes from another cluster: ${other_cluster.events} events and ${other_cluster.instances} instances were brought below this one's transactions`,
        ];
  return [
    ...ahead,
    last_at === null
      ? 'the database is empty'
      : `the database knows of nothing after ${last_at}; what happened later happens again`,
    `${report.open_runs} runs are open, ${report.open_reviews} questions wait for a person, ${report.pending_webhooks} webhooks are to be delivered`,
  ];
}

function describeCalls({ interrupted_calls: calls }: WholeRecovery): string[] {
  if (calls.length === 0) return [];
  const lines = calls.slice(0, shownCalls).map(({ run_id, step_id, item, capability, endpoint }) => {
    const unit = `${run_id ?? 'a call by itself'}${step_id === null ? '' : ` ${step_id}`}${item ? ` [${item}]` : ''}`;
    return `  ${unit} → ${capability} at ${endpoint}`;
  });
  const more = calls.length > shownCalls ? [`  and ${calls.length - shownCalls} more`] : [];
  return [
    `${calls.length} calls were under way and may happen twice, with the same Idempotency-Key:`,
    ...lines,
    ...more,
  ];
}

function describeTemporal(report: WholeRecovery): string[] {
  const { search_attributes: names, ended_in_temporal: ended } = report;
  return [
    ...(names.length === 0 ? [] : [`search attributes added to Temporal: ${names.join(', ')}`]),
    `started again: ${report.restarted_runs} runs, ${report.restarted_ladders} ladders, ${report.restored_schedules} schedules; ${report.running_runs} runs go on in Temporal`,
    ...(report.undelivered_starts === 0
      ? []
      : [`${report.undelivered_starts} runs had not been started yet; a server starts them`]),
    ...(ended.length === 0
      ? []
      : [
          `${ended.length} runs are open here and have ended in Temporal, which is newer than the database; servers would end them as failed.`,
          'Give the database an empty namespace, or start all open runs anew by capstan recover --restart-all, before a server starts:',
          ...ended.slice(0, shownCalls).map((id) => `  ${id}`),
        ]),
  ];
}

async function runRecover(flags: RecoverFlags, shell: Shell): Promise<void> {
  const { checkSettings, readEnvFile } = await import('../process/process-settings.ts');
  const { translateFault } = await import('../process/become-process.ts');
  const { runRecovery } = await import('../../upkeep/recover.ts');
  const { environment } = shell;
  const settings = checkSettings({ ...readEnvFile(flags.envFile, environment), ...environment });
  const print = createPrinter(shell);
  try {
    const report = await runRecovery(settings, { restartsAll: flags.restartAll });
    const lines = [...describeDatabase(report), ...describeCalls(report), ...describeTemporal(report)];
    for (const line of flags.json ? [JSON.stringify(report)] : lines) print.line(line);
    if (report.ended_in_temporal.length > 0) shell.exitWith(exitCodes.failed);
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
    .option('--env-file <file>', 'variables for what the environment leaves open')
    .option('--json', 'print what was found and done as JSON', false)
    .action((flags: RecoverFlags) => runRecover(flags, shell));
}
