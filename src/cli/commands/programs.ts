/**
 * Commands that are programs of Capstan themselves instead of clients of its API: `server`, `worker`, `migrate`,
 * `purge` and `recover`. What they run is loaded when they are called.
 */

import { open } from 'node:fs/promises';
import type { Command } from 'commander';
import type { SchemaState } from '../../upkeep/migrate-database.ts';
import type { WholeFindings, WholeRecovery } from '../../upkeep/recover.ts';
import { exitCodes, UsageError } from '../errors.ts';
import { formatCounts } from '../render/formats.ts';
import { createPrinter } from '../render/print.ts';
import type { Shell } from '../shell.ts';

// What `capstan recover` says: what it found, before it changes anything, and what it did.

const shownRuns = 20;

function describeDatabase({ other_cluster, last_at, ...found }: WholeFindings): string[] {
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
    `${found.open_runs} runs are open, ${found.open_reviews} questions wait for a person, ${found.pending_webhooks} webhooks are to be delivered`,
  ];
}

/** All that are known: afterwards nobody finds them again. */
function describeCalls({ interrupted_calls: calls, open_calls }: WholeFindings): string[] {
  if (calls.length === 0) return [];
  const lines = calls.map(({ run_id, step_id, item, capability, endpoint }) => {
    const unit = `${run_id ?? 'a call by itself'}${step_id === null ? '' : ` ${step_id}`}${item ? ` [${item}]` : ''}`;
    return `  ${unit} → ${capability} at ${endpoint}`;
  });
  const count = Math.max(open_calls, calls.length);
  const more = count > calls.length ? [`  and ${count - calls.length} more`] : [];
  return [
    `${count} calls were under way and may happen twice, with the same Idempotency-Key:`,
    ...lines,
    ...more,
  ];
}

function listKeys(what: string, ids: readonly string[]): string[] {
  return ids.length === 0 ? [] : [`${what}:`, ...ids.map((id) => `  ${id}`)];
}

/** All that are known: the audit log of the database does not name them. */
function describeKeys({ lost_acts: acts }: WholeFindings): string[] {
  if (acts === null)
    return [
      'keys that were revoked or rotated after the backup work again as they did; --audit FILE names them from an audit log that was kept elsewhere',
    ];
  return [
    ...listKeys('keys that were revoked after the backup, and are revoked again', acts.revoked),
    ...listKeys(
      'keys whose former secret works again, because they were rotated after the backup',
      acts.rotated,
    ),
    ...listKeys('keys that were made after the backup, and are gone', acts.made),
  ];
}

export function describeFindings(found: WholeFindings): string[] {
  return [...describeDatabase(found), ...describeCalls(found), ...describeKeys(found)];
}

function listRuns(ids: readonly string[]): string[] {
  const more = ids.length > shownRuns ? [`  and ${ids.length - shownRuns} more`] : [];
  return [...ids.slice(0, shownRuns).map((id) => `  ${id}`), ...more];
}

function describeEnded(ended: readonly string[]): string[] {
  if (ended.length === 0) return [];
  return [
    `${ended.length} runs are open here and have ended in Temporal, which is newer than the database; servers would end them as failed, or never.`,
    'Give the database an empty namespace, or start all open runs anew by capstan recover --restart-all, before a server starts:',
    ...listRuns(ended),
  ];
}

function describeUndeleted(undeleted: readonly string[]): string[] {
  if (undeleted.length === 0) return [];
  return [
    `${undeleted.length} runs were not started anew, because Temporal had not deleted their workflows after five minutes.`,
    'Repeat capstan recover --restart-all before a server starts:',
    ...listRuns(undeleted),
  ];
}

export function describeRecovery(report: WholeRecovery): string[] {
  const { search_attributes: names, search_attributes_fault: fault } = report;
  return [
    ...(fault === null ? [] : [`search attributes could not be registered: ${fault}`]),
    ...(names.length === 0 ? [] : [`search attributes added to Temporal: ${names.join(', ')}`]),
    `started again: ${report.restarted_runs} runs, ${report.restarted_ladders} ladders, ${report.restored_schedules} schedules; ${report.running_runs} runs go on in Temporal`,
    `ended: ${report.ended_sessions} sessions and ${report.ended_login_links} login links of the backup; ${report.revoked_keys.length} keys were revoked again`,
    ...(report.undelivered_starts === 0
      ? []
      : [`${report.undelivered_starts} runs had not been started yet; a server starts them`]),
    ...describeEnded(report.ended_in_temporal),
    ...describeUndeleted(report.undeleted_runs),
  ];
}

/** Whether every open run goes on when servers start. */
export function isWhole({ ended_in_temporal, undeleted_runs }: WholeRecovery): boolean {
  return ended_in_temporal.length === 0 && undeleted_runs.length === 0;
}

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
  const { checkSettings, readEnvFile, translateFault } = await import('../own-process.ts');
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

interface MigrateOptions {
  readonly envFile?: string;
  readonly check: boolean;
  readonly json: boolean;
  readonly apiKeyFile?: string;
}

function describe({ applied, pending, newer }: SchemaState, isCheck: boolean): string[] {
  const done = isCheck ? 'would apply' : 'applied';
  const lines = pending.map((name) => `${done} ${name}`);
  if (newer.length > 0) lines.push(`left alone, of a newer version: ${newer.join(', ')}`);
  const last = [...applied, ...newer, ...(isCheck ? [] : pending)].at(-1);
  const state = last === undefined ? 'the database has no schema yet' : `the schema is at ${last}`;
  return [...lines, `${state}${pending.length === 0 ? '; nothing to do' : ''}`];
}

async function runMigrate(options: MigrateOptions, shell: Shell): Promise<void> {
  const { checkSettings, readEnvFile, translateFault } = await import('../own-process.ts');
  const { migrateDatabase, readSchemaState } = await import('../../upkeep/migrate-database.ts');
  const { environment } = shell;
  const settings = { ...readEnvFile(options.envFile, environment), ...environment };
  const { DATABASE_URL, API_KEY_FILE } = checkSettings(settings);
  const apiKeyFile = options.apiKeyFile ?? API_KEY_FILE;
  const print = createPrinter(shell);
  try {
    const before = await readSchemaState(DATABASE_URL);
    if (!options.check) await migrateDatabase(DATABASE_URL, apiKeyFile);
    if (options.json) print.line(JSON.stringify(before));
    else for (const line of describe(before, options.check)) print.line(line);
    if (!options.check && apiKeyFile !== undefined && !options.json) {
      print.line(`an admin key is in ${apiKeyFile}`);
    }
  } catch (thrown) {
    throw translateFault(thrown, DATABASE_URL);
  }
}

/** `capstan migrate`: the schema, and with a file for it a first key; nothing stays running. */
export function registerMigrateCommand(program: Command, shell: Shell): void {
  program
    .command('migrate')
    .description('bring the database to the newest schema that this version knows, and end')
    .option('--check', 'only say what would be done; nothing is written', false)
    .option(
      '--api-key-file <file>',
      'leave an admin key there, as a first start does (default: API_KEY_FILE)',
    )
    .option('--env-file <file>', 'variables for what the environment leaves open')
    .option('--json', 'print the state before as JSON', false)
    .action((options: MigrateOptions) => runMigrate(options, shell));
}

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
  const { checkSettings, readEnvFile, translateFault } = await import('../own-process.ts');
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

/** `capstan server`: the API and maintenance, until SIGTERM or SIGINT. */
export function registerServerCommand(program: Command): void {
  program
    .command('server')
    .description('run a server: the API, the console and maintenance, until SIGTERM or SIGINT')
    .option('--env-file <file>', 'variables for what the environment leaves open')
    .action(async ({ envFile }: { envFile?: string }) => {
      const { becomeProcess } = await import('../own-process.ts');
      await becomeProcess({ envFile, load: () => import('../../server.ts') });
    });
}

/** `capstan worker`: workflows and activities, until SIGTERM or SIGINT. */
export function registerWorkerCommand(program: Command): void {
  program
    .command('worker')
    .description('run a worker: it carries out the steps of runs, until SIGTERM or SIGINT')
    .option('--env-file <file>', 'variables for what the environment leaves open')
    .action(async ({ envFile }: { envFile?: string }) => {
      const { becomeProcess } = await import('../own-process.ts');
      await becomeProcess({ envFile, load: () => import('../../worker.ts') });
    });
}
