import type { Command } from 'commander';
import { linkToConsole } from '../client/console-link.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { latestRun, resolveRunId } from '../input/run-reference.ts';
import { openBrowser } from '../open-browser.ts';
import type { Shell } from '../shell.ts';

interface OpenOptions extends CommonOptions {
  readonly browser: boolean;
}

async function open(reference: string, options: OpenOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const runId = await resolveRunId(client, reference);
  const url = await linkToConsole(client, `/runs/${encodeURIComponent(runId)}`);
  if (json) return print.json(JSON.stringify({ url }));
  print.line(url);
  if (options.browser && shell.stdout.isTTY === true) openBrowser(url);
}

export function registerOpenCommand(program: Command, shell: Shell): void {
  const command = program
    .command('open')
    .description('open a run in the console, already signed in')
    .argument('[run]', 'run id, or @latest', latestRun)
    .option('--no-browser', 'only print the link')
    .addHelpText('after', '\nExample:\n  capstan open @latest')
    .action((reference: string, options: OpenOptions) => open(reference, options, shell));
  addCommonOptions(command);
}
