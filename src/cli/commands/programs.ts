/**
 * Commands that are programs of Capstan themselves instead of clients of its API: `server`, `worker`, `migrate`,
 * `purge` and `recover`. Each program is loaded when its command is called.
 */

import { open } from 'node:fs/promises';
import type { Config } from '../../config.ts';
import type { SchemaState } from '../../processes/upkeep/migrate-database.ts';
import type { WholeFindings, WholeRecovery } from '../../processes/upkeep/recover.ts';
import { local, type Register, usually } from '../command.ts';
import { exitCodes, UsageError } from '../errors.ts';
import { formatCounts } from '../render/formats.ts';
import { createPrinter } from '../render/print.ts';
import type { Shell } from '../shell.ts';

// Output of `capstan recover`: its findings before it changes anything, then its changes.

const shownRuns = 20;

function describeOpen({ open_runs, open_reviews, pending_webhooks }: WholeFindings): string {
  return `${open_runs} runs are open, ${open_reviews} reviews are open, ${pending_webhooks} webhooks are to be delivered`;
}

function describeDatabase(found: WholeFindings): string[] {
  const { other_cluster, last_at } = found;
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
    describeOpen(found),
  ];
}

/** Lists every known call: they cannot be found afterwards. */
function describeCalls({ interrupted_calls: calls, open_calls }: WholeFindings): string[] {
  if (calls.length === 0) return [];
  const lines = calls.map(({ run_id, step_id, item, capability, endpoint }) => {
    const unit = `${run_id ?? 'a call by itself'}${step_id === null ? '' : ` ${step_id}`}${item ? ` [${item}]` : ''}`;
    return `  ${unit} → ${capability} at ${endpoint}`;
  });
  const count = Math.max(open_calls, calls.length);
  const more = count > calls.length ? [`  and ${count - calls.length} more`] : [];
  return [
    `${count} calls were in flight and may happen twice, with the same Idempotency-Key:`,
    ...lines,
    ...more,
  ];
}

function listKeys(what: string, ids: readonly string[]): string[] {
  return ids.length === 0 ? [] : [`${what}:`, ...ids.map((id) => `  ${id}`)];
}

/** Lists every known key: the restored audit log does not name them. */
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

function describeTemporal({
  temporal_address: address,
  temporal_namespace: namespace,
}: WholeFindings): string {
  return `Temporal at ${address}, namespace ${namespace}`;
}

export function describeFindings(found: WholeFindings): string[] {
  return [
    describeTemporal(found),
    ...describeDatabase(found),
    ...describeCalls(found),
    ...describeKeys(found),
  ];
}

/** Of a stack that was stopped and copied: nothing is older than it was. */
export function describeMoved(found: WholeFindings): string[] {
  return [describeTemporal(found), describeOpen(found), ...describeCalls(found)];
}

function listRuns(ids: readonly string[]): string[] {
  const more = ids.length > shownRuns ? [`  and ${ids.length - shownRuns} more`] : [];
  return [...ids.slice(0, shownRuns).map((id) => `  ${id}`), ...more];
}

function describeFailed(failed: WholeRecovery['failed_starts']): string[] {
  if (failed.length === 0) return [];
  return [
    `not started: ${failed.length}, which Temporal has not taken; servers try again, and so does capstan recover:`,
    ...listRuns(failed.map(({ id, reason }) => `${id}: ${reason}`)),
  ];
}

function describeEnded(ended: readonly string[]): string[] {
  if (ended.length === 0) return [];
  return [
    `${ended.length} runs are open here and have ended in Temporal, which is newer than the database; servers would end them as failed, or never.`,
    'Give the database an empty namespace, or start all open runs again by capstan recover --restart-all, before a server starts:',
    ...listRuns(ended),
  ];
}

function describeUndeleted(undeleted: readonly string[]): string[] {
  if (undeleted.length === 0) return [];
  return [
    `${undeleted.length} runs were not started again, because Temporal had not deleted their workflows after five minutes.`,
    'Repeat capstan recover --restart-all before a server starts:',
    ...listRuns(undeleted),
  ];
}

export function describeRecovery(report: WholeRecovery): string[] {
  const { search_attributes: names, search_attributes_fault: fault } = report;
  return [
    ...(fault === null ? [] : [`search attributes could not be registered: ${fault}`]),
    ...(names.length === 0 ? [] : [`search attributes added to Temporal: ${names.join(', ')}`]),
    `started again: ${report.restarted_runs} runs, ${report.restarted_ladders} ladders, ${report.restored_schedules} schedules; ${report.running_runs} runs continue in Temporal`,
    `ended: ${report.ended_sessions} sessions and ${report.ended_login_links} login links; ${report.revoked_keys.length} keys were revoked again`,
    ...(report.undelivered_starts === 0
      ? []
      : [`${report.undelivered_starts} runs had not been started yet; a server starts them`]),
    ...describeFailed(report.failed_starts),
    ...describeEnded(report.ended_in_temporal),
    ...describeUndeleted(report.undeleted_runs),
  ];
}

/** Everything that was to start has started, and every other open run will continue when servers start. */
export function isWhole({ failed_starts, ended_in_temporal, undeleted_runs }: WholeRecovery): boolean {
  return [failed_starts, ended_in_temporal, undeleted_runs].every((left) => left.length === 0);
}

/** Reads a possibly large file. @throws UsageError when it cannot be read */
async function readLines(file: string): Promise<AsyncIterable<string>> {
  const handle = await open(file).catch((thrown: unknown) => {
    throw new UsageError(`${file} cannot be read: ${thrown instanceof Error ? thrown.message : thrown}`);
  });
  return handle.readLines();
}

const envFileOption = { '--env-file <file>': 'variables for what the environment leaves open' } as const;

/** @throws UsageError for invalid settings; other errors in one line if possible */
export async function withSettings(
  envFile: string | undefined,
  { environment }: Shell,
  work: (settings: Config) => Promise<void>,
): Promise<void> {
  const { checkSettings, completeEnvironment, translateFault } = await import('../own-process.ts');
  const settings = checkSettings(completeEnvironment(environment, envFile));
  try {
    await work(settings);
  } catch (thrown) {
    throw translateFault(thrown, settings.DATABASE_URL);
  }
}

/** `capstan recover`: runs after a restore, before servers and workers start. */
export const registerRecoverCommand = local('recover', {
  about:
    'after a restore of the database: start runs that Temporal no longer knows, and list calls that may happen twice; may be repeated',
  options: {
    '--restart-all': usually(
      'delete the workflows of all open runs in Temporal first: for a Temporal that is newer than the database',
      false,
    ),
    '--audit <file>':
      'an audit log from elsewhere: list the keys that were created, revoked or rotated after the backup, and revoke the revoked ones again',
    ...envFileOption,
    '--json': usually(
      'print findings and actions as JSON at the end; findings also go to stderr as text at once',
      false,
    ),
  },
  run: async ({ restartAll, audit, envFile, json }, shell) => {
    const { runRecovery } = await import('../../processes/upkeep/recover.ts');
    const print = createPrinter(shell);
    await withSettings(envFile, shell, async (settings) => {
      const report = await runRecovery(settings, {
        restartsAll: restartAll,
        auditLines: audit === undefined ? undefined : await readLines(audit),
        onFound: (found) => describeFindings(found).forEach(json ? print.remark : print.line),
      });
      print.lines(json ? [JSON.stringify(report)] : describeRecovery(report));
      if (!isWhole(report)) shell.exitWith(exitCodes.failed);
    });
  },
});

function describe({ applied, pending, newer, functions }: SchemaState, isCheck: boolean): string[] {
  const lines = pending.map((name) => `${isCheck ? 'would apply' : 'applied'} ${name}`);
  if (functions.length > 0)
    lines.push(`${isCheck ? 'would create' : 'created'} functions of ${functions.join(', ')}`);
  if (newer.length > 0) lines.push(`left alone, of a newer version: ${newer.join(', ')}`);
  const last = [...applied, ...newer, ...(isCheck ? [] : pending)].at(-1);
  const state = last === undefined ? 'the database has no schema yet' : `the schema is at ${last}`;
  return [...lines, `${state}${pending.length + functions.length === 0 ? '; nothing to do' : ''}`];
}

/** `capstan migrate`: creates or migrates the schema, writes a first key if a file for it is given, then exits. */
export const registerMigrateCommand = local('migrate', {
  about: 'migrate the database to the newest schema that this version knows, and exit',
  options: {
    '--check': usually('only print the changes; write nothing', false),
    '--api-key-file <file>': 'leave an admin key there, as a first start does (default: API_KEY_FILE)',
    ...envFileOption,
    '--json': usually('print the state before as JSON', false),
  },
  run: async ({ check, apiKeyFile: given, envFile, json }, shell) => {
    const { migrateDatabase, readSchemaState } = await import('../../processes/upkeep/migrate-database.ts');
    const print = createPrinter(shell);
    await withSettings(envFile, shell, async ({ DATABASE_URL, API_KEY_FILE }) => {
      const apiKeyFile = given ?? API_KEY_FILE;
      const before = await readSchemaState(DATABASE_URL);
      if (!check) await migrateDatabase(DATABASE_URL, apiKeyFile);
      print.lines(json ? [JSON.stringify(before)] : describe(before, check));
      if (!check && apiKeyFile !== undefined && !json) print.line(`an admin key is in ${apiKeyFile}`);
    });
  },
});

function describePurge(counts: Readonly<Record<string, number>>, isTrial: boolean): string[] {
  const lines = formatCounts(counts);
  if (lines.length === 0) return ['nothing is older than it is kept'];
  return [isTrial ? 'would be deleted:' : 'deleted:', ...lines];
}

/** `capstan purge`: applies the retention now. It works on the database, so no server has to run. */
export const registerPurgeCommand = local('purge', {
  about:
    'delete what is older than RUN_, CHOICE_ and LEDGER_RETENTION_DAYS allow; works on DATABASE_URL and MEDIA_URL, no server has to run',
  options: {
    '--dry-run': usually('only print the deletions', false),
    '--export <dir>': 'first write what is deleted into this folder, as files of JSON lines',
    ...envFileOption,
    '--json': usually('print the counts as JSON', false),
  },
  run: async ({ dryRun: isTrial, export: exportDir, envFile, json }, shell) => {
    const { runPurge } = await import('../../processes/upkeep/purge.ts');
    await withSettings(envFile, shell, async (settings) => {
      const counts = await runPurge(settings, { exportDir, isTrial });
      createPrinter(shell).lines(json ? [JSON.stringify(counts)] : describePurge(counts, isTrial));
    });
  },
});

/** A command whose process becomes the loaded program. */
function processCommand(name: string, about: string, load: () => Promise<unknown>): Register {
  return local(name, {
    about,
    options: envFileOption,
    run: async ({ envFile }) => {
      const { becomeProcess } = await import('../own-process.ts');
      await becomeProcess({ envFile, load });
    },
  });
}

export const registerServerCommand = processCommand(
  'server',
  'run a server: the API, the console and maintenance, until SIGTERM or SIGINT',
  () => import('../../server.ts'),
);

export const registerWorkerCommand = processCommand(
  'worker',
  'run a worker: it carries out the steps of runs, until SIGTERM or SIGINT',
  () => import('../../worker.ts'),
);
