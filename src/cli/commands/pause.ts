/** `pause` and `resume`: the one takes back the other. */
import type { Command } from 'commander';
import { Run } from '../../contracts/run.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { latestRun, resolveRunId, runPath } from '../input/run-reference.ts';
import { formatState } from '../render/states.ts';
import type { Shell } from '../shell.ts';

function post(action: 'pause' | 'resume', shell: Shell) {
  return async (reference: string, options: CommonOptions): Promise<void> => {
    const { client, print, json } = await openSession(options, shell);
    const runId = await resolveRunId(client, reference);
    const { value, text } = await client.post(runPath(runId, `/${action}`), Run, jsonBody({}));
    if (json) return print.json(text);
    print.line(`${formatState(value.state, print.style)}  ${runId}`);
  };
}

export function registerPauseCommand(program: Command, shell: Shell): void {
  const command = program
    .command('pause')
    .description('let nothing new of a run start; what runs goes on to its end')
    .argument('[run]', 'run id, or @latest', latestRun)
    .addHelpText('after', '\nExample:\n  capstan pause @latest')
    .action(post('pause', shell));
  addCommonOptions(command);
}

export function registerResumeCommand(program: Command, shell: Shell): void {
  const command = program
    .command('resume')
    .description('let a paused run go on')
    .argument('[run]', 'run id, or @latest', latestRun)
    .addHelpText('after', '\nExample:\n  capstan resume @latest')
    .action(post('resume', shell));
  addCommonOptions(command);
}
