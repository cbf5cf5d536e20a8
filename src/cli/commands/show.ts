import type { Command } from 'commander';
import { StepDetail } from '../../contracts/run.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { readItem } from '../input/option-values.ts';
import { getRun, latestRun, resolveRunId, runPath } from '../input/run-reference.ts';
import { renderStepDetail } from '../render/step-detail.ts';
import type { Shell } from '../shell.ts';
import { showRun } from '../watch/show-run.ts';
import { watchRun } from '../watch/watch-run.ts';

interface ShowOptions extends CommonOptions {
  readonly step?: string;
  readonly item?: number;
  readonly watch?: boolean;
}

async function showStep(
  { client, print, json, shell }: Session,
  runId: string,
  { stepId, item }: { readonly stepId: string; readonly item: number | undefined },
): Promise<void> {
  const path = runPath(runId, `/steps/${encodeURIComponent(stepId)}`);
  const { value, text } = await client.get(path, StepDetail, { item });
  if (json) return print.json(text);
  print.lines(renderStepDetail(value, { style: print.style, width: print.width, now: shell.now() }));
}

async function show(reference: string, options: ShowOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  const runId = await resolveRunId(session.client, reference);
  if (options.watch === true) return shell.exitWith(await watchRun(session, runId));
  const { step: stepId, item } = options;
  if (stepId !== undefined) return showStep(session, runId, { stepId, item });
  if (item !== undefined) throw new UsageError('--item goes with --step');
  const { value, text } = await getRun(session.client, runId);
  if (session.json) return session.print.json(text);
  showRun(session, value, true);
}

export function registerShowCommand(program: Command, shell: Shell): void {
  const command = program
    .command('show')
    .description('show a run, or one of its steps with every attempt and why it went where')
    .argument('[run]', 'run id, or @latest', latestRun)
    .option('-s, --step <id>', 'show this step')
    .option('-i, --item <n>', 'of a step with for_each: this item, from 1 on', readItem)
    .option('-w, --watch', 'watch the run to its end; exits like run --watch')
    .addHelpText('after', '\nExample:\n  capstan show @latest --step trim')
    .action((reference: string, options: ShowOptions) => show(reference, options, shell));
  addCommonOptions(command);
}
