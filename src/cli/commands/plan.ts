import { type Command, Option } from 'commander';
import { Plan } from '../../contracts/plan.ts';
import { Priority } from '../../contracts/primitives.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { exitCodes } from '../exit-codes.ts';
import { addBudgetOption } from '../input/option-values.ts';
import { readJob, readPipeline } from '../input/run-request.ts';
import { isExpectedAbove, showPlan } from '../render/plan-table.ts';
import type { Shell } from '../shell.ts';

interface PlanOptions extends CommonOptions {
  readonly job?: string;
  readonly version?: string;
  readonly priority?: string;
  readonly budget?: number;
}

async function plan(target: string, options: PlanOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  const { client, print, json } = session;
  // What is found in a file without errors is among the findings of the plan.
  const { pipeline, ...named } = await readPipeline({ ...session, json: true }, { ...options, target });
  const job = options.job === undefined ? undefined : await readJob(session, { ...options, target });
  const wish = { job, priority: options.priority, budget_ceiling_usd: options.budget };
  const path = pipeline === undefined ? '/v1/plan' : `/v1/pipelines/${encodeURIComponent(target)}/plan`;
  const { value, text } = await client.post(path, Plan, jsonBody({ ...named, ...wish }));
  if (json) print.json(text);
  else showPlan(value, print);
  const isBroken = value.findings.some(({ severity }) => severity === 'error');
  if (isBroken || isExpectedAbove(value)) shell.exitWith(exitCodes.failed);
}

const help = `
Nobody is called and nothing is written. Without --job, what depends on the job is not known. It exits 1 when
the run would fail, or is expected to cost more than its ceiling. A worst case above the ceiling is only a
warning: such a run waits for money when its calls do cost so much.

Example:
  capstan plan pipeline.yaml --job job.json --budget 0.50`;

export function registerPlanCommand(program: Command, shell: Shell): void {
  const command = program
    .command('plan')
    .description('show what a run would do, take and cost now, without calling anybody')
    .argument('<file|name>', 'YAML or JSON file, - for stdin, or a pipeline name')
    .option('-j, --job <job>', 'the job: a file, - for stdin, or inline JSON such as \'{"n": 1}\'')
    .option('-v, --version <version>', 'version of the stored pipeline (default: the latest)')
    .addOption(new Option('-p, --priority <priority>', 'who may wait').choices(Priority.options))
    .addHelpText('after', help)
    .action((target: string, options: PlanOptions) => plan(target, options, shell));
  addBudgetOption(command, 'the most that the run may cost');
  addCommonOptions(command);
}
