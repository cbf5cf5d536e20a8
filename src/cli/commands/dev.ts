import { type Command, InvalidArgumentError } from 'commander';
import type { Stack } from '../../dev/stack.ts';
import { createApiClient } from '../client/api-client.ts';
import { dataFolder } from '../client/connection.ts';
import { linkToConsole } from '../client/console-link.ts';
import { stackSignal, untilAborted } from '../client/stack-signal.ts';
import { describeError } from '../errors.ts';
import { collectText } from '../input/option-values.ts';

interface DevOptions {
  readonly data?: string;
  readonly port?: number;
  readonly ephemeral: boolean;
  readonly samples: boolean;
  readonly json: boolean;
  readonly watch?: readonly string[];
}

function parsePort(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new InvalidArgumentError('a port is a number from 0 (any free one) to 65535');
}

function describeStack({ info, file }: Stack, consoleUrl: string): string {
  return [
    '',
    'Capstan is ready.',
    `  API          ${info.api_url}`,
    `  API docs     ${info.api_url}/docs`,
    `  Console      ${consoleUrl}`,
    `  Temporal UI  ${info.temporal_ui_url ?? 'not known'}`,
    `  Access       ${file} (holds the API key)`,
    'Ctrl-C stops everything.',
    '',
  ].join('\n');
}

/** The console's address, already signed in: once, within 10 minutes. */
function signedIn({ info }: Stack): Promise<string> {
  const client = createApiClient({ url: info.api_url, key: info.api_key, project: info.project_id });
  return linkToConsole(client);
}

async function runDev(options: DevOptions): Promise<void> {
  const { startStack } = await import('../../dev/stack.ts');
  const { createPrinter } = await import('../../dev/printer.ts');
  const signal = stackSignal();
  const printer = createPrinter(options.json ? process.stderr : process.stdout);
  try {
    const stack = await startStack({
      dataDir: dataFolder(options.data, process.env),
      ephemeral: options.ephemeral,
      samples: options.samples,
      watch: options.watch ?? [],
      port: options.port ?? null,
      environment: process.env,
      report: printer.report,
      signal,
    });
    console.log(options.json ? JSON.stringify(stack.info) : describeStack(stack, await signedIn(stack)));
    await untilAborted(signal);
    printer.report({ part: 'capstan', status: 'note', detail: 'stopping', elapsedMs: 0 });
    await stack.stop();
  } catch (error) {
    if (signal.aborted) return;
    printer.close();
    const { exitCode } = describeError(error);
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = exitCode;
  } finally {
    printer.close();
  }
}

/** `capstan dev`: the whole of Capstan on this machine until Ctrl-C. */
export function registerDevCommand(program: Command): void {
  program
    .command('dev')
    .description('start everything on this machine: Postgres, Temporal, server, worker, sample capabilities')
    .option('--data <dir>', 'folder that keeps all data (default: CAPSTAN_DATA, else .capstan)')
    .option(
      '--port <number>',
      'port of the API; 0: any free one (default: the last one, or 7400; a free one if taken)',
      parsePort,
    )
    .option('--ephemeral', 'keep the data in a temporary folder and remove it at the end', false)
    .option('--no-samples', 'start no sample capabilities')
    .option(
      '--watch <folder>',
      'start the capability in a folder too, and again when its files change (repeatable)',
      collectText,
    )
    .option('--json', 'print the content of stack.json as one line when ready', false)
    .action(runDev);
}
