import { type Command, InvalidArgumentError } from 'commander';
import { Run } from '../../contracts/run.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { readUsd } from '../input/option-values.ts';
import { resolveRunId, runPath } from '../input/run-reference.ts';
import { formatUsd } from '../render/amounts.ts';
import type { Shell } from '../shell.ts';

function readCeiling(text: string): number | null {
  if (text === 'none') return null;
  try {
    return readUsd(text);
  } catch {
    throw new InvalidArgumentError('Write an amount of US dollars, such as 2.50, or none.');
  }
}

async function setCeiling(
  reference: string,
  ceiling: number | null,
  options: CommonOptions,
  shell: Shell,
): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const runId = await resolveRunId(client, reference);
  const body = jsonBody({ budget_ceiling_usd: ceiling });
  const { value, text } = await client.post(runPath(runId, '/budget'), Run, body);
  if (json) return print.json(text);
  const limit = value.budget_ceiling_usd === null ? 'none' : formatUsd(value.budget_ceiling_usd);
  print.line(`ceiling ${limit}, spent ${formatUsd(value.cost_usd)}  ${runId}`);
}

export function registerBudgetCommand(program: Command, shell: Shell): void {
  const command = program
    .command('budget')
    .description('give a run another ceiling; steps that wait for money go on')
    .argument('<run>', 'run id, or @latest')
    .argument('<usd>', 'US dollars for the whole run, or none', readCeiling)
    .addHelpText('after', '\nExample:\n  capstan budget @latest 2.50')
    .action((reference: string, ceiling: number | null, options: CommonOptions) =>
      setCeiling(reference, ceiling, options, shell),
    );
  addCommonOptions(command);
}
