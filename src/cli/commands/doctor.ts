import { homedir } from 'node:os';
import type { Command } from 'commander';
import type { Check } from '../../dev/doctor/check.ts';
import { dataFolder } from '../client/connection.ts';

const marks = { ok: 'ok     ', warning: 'warning', missing: 'MISSING' } as const;

function print(checks: readonly Check[]): void {
  const width = Math.max(...checks.map(({ name }) => name.length));
  for (const { name, status, found, remedy } of checks) {
    console.log(`${marks[status]}  ${name.padEnd(width)}  ${found}`);
    if (remedy !== null) console.log(`${' '.repeat(9 + width)}  → ${remedy}`);
  }
}

interface DoctorCommand {
  readonly data?: string;
  readonly envFile?: string;
  readonly fix: boolean;
  readonly json?: boolean;
}

async function runDoctor({ data, envFile, fix: fixes, json }: DoctorCommand): Promise<void> {
  const { runChecks } = await import('../../dev/doctor/run-checks.ts');
  const { findCacheDir } = await import('../../dev/temporal/source.ts');
  const { readEnvFile } = await import('../process/process-settings.ts');
  // Of the process itself: keys of a bucket are looked for there.
  const environment = Object.assign(process.env, readEnvFile(envFile, process.env));
  const cacheDir = findCacheDir(environment, homedir());
  const checks = await runChecks({ dataDir: dataFolder(data, environment), environment, cacheDir, fixes });
  if (json === true) console.log(JSON.stringify(checks, null, 2));
  else print(checks);
  if (checks.some(({ status }) => status === 'missing')) process.exitCode = 1;
}

/** `capstan doctor`: is everything here that Capstan needs? */
export function registerDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description(
      'say what is missing on this machine and how to get it; exit code 1 when Capstan cannot start',
    )
    .option('--data <dir>', 'folder that keeps all data (default: CAPSTAN_DATA, else .capstan)')
    .option('--fix', 'register what Temporal lacks of search attributes', false)
    .option('--json', 'print the findings as JSON')
    .option('--env-file <file>', 'variables for what the environment leaves open')
    .action(runDoctor);
}
