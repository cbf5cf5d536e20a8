import type { Command } from 'commander';
import { z } from 'zod';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { exitCodes } from '../exit-codes.ts';
import { getRun, latestRun, resolveRunId, runPath } from '../input/run-reference.ts';
import { formatState } from '../render/states.ts';
import type { Shell } from '../shell.ts';
import { watchRun } from '../watch/watch-run.ts';

interface CancelOptions extends CommonOptions {
  readonly reason?: string;
  readonly terminate?: boolean;
  readonly wait?: boolean;
}

async function cancel(reference: string, options: CancelOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  const { client, print, json } = session;
  const runId = await resolveRunId(client, reference);
  await client.post(
    runPath(runId, '/cancel'),
    z.unknown(),
    jsonBody({
      reason: options.reason,
      mode: options.terminate === true ? 'terminate' : 'graceful',
    }),
  );
  if (options.wait === true) {
    const code = await watchRun(session, runId);
    return shell.exitWith(code === exitCodes.cancelled ? exitCodes.ok : code || exitCodes.failed);
  }
  const { value, text } = await getRun(client, runId);
  if (json) return print.json(text);
  print.line(`${formatState(value.state, print.style)}  ${runId}`);
}

export function registerCancelCommand(program: Command, shell: Shell): void {
  const command = program
    .command('cancel')
    .description('cancel a run; its running calls are told to stop')
    .argument('[run]', 'run id, or @latest', latestRun)
    .option('-r, --reason <text>', 'kept with the run')
    .option('--terminate', 'end it at once, without waiting for what runs')
    .option('-w, --wait', 'wait until it has ended; exits 0 when it was cancelled')
    .addHelpText('after', '\nExample:\n  capstan cancel @latest --reason "wrong clip"')
    .action((reference: string, options: CancelOptions) => cancel(reference, options, shell));
  addCommonOptions(command);
}
