import type { Command } from 'commander';
import type { SchemaState } from '../../upkeep/migrate-database.ts';
import { createPrinter } from '../render/print.ts';
import type { Shell } from '../shell.ts';

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
  const { checkSettings, readEnvFile } = await import('../process/process-settings.ts');
  const { translateFault } = await import('../process/become-process.ts');
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
