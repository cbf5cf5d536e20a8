import { type Command, Option } from 'commander';
import { RunList, RunState } from '../../contracts/run.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { readLimit } from '../input/option-values.ts';
import { formatAge, formatSpan, formatUsd } from '../render/amounts.ts';
import { formatRunState, formatStepCounts } from '../render/states.ts';
import type { Column } from '../render/table.ts';
import type { Shell } from '../shell.ts';

interface LsOptions extends CommonOptions {
  readonly state?: string;
  readonly pipeline?: string;
  readonly label?: string;
  readonly limit: number;
}

const columns: readonly Column[] = [
  { header: 'RUN' },
  { header: 'PIPELINE', shrinks: true },
  { header: 'STATE' },
  { header: 'STEPS', align: 'right' },
  { header: 'CREATED', align: 'right' },
  { header: 'TIME', align: 'right' },
  { header: 'COST', align: 'right' },
  { header: 'ERROR', shrinks: true },
];

async function list(options: LsOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { state, pipeline, label, limit } = options;
  const { value, text } = await client.get('/v1/runs', RunList, { state, pipeline, label, limit });
  if (json) return print.json(text);
  if (value.items.length === 0) return print.remark('no runs');
  const now = shell.now();
  const rows = value.items.map((run) => [
    run.run_id,
    `${run.pipeline}@${run.version}`,
    formatRunState(run, print.style),
    formatStepCounts(run.step_counts),
    formatAge(run.created_at, now),
    formatSpan(run.started_at, run.finished_at, now),
    formatUsd(run.cost_usd),
    run.error === undefined ? '' : `${run.error.code}: ${run.error.message}`,
  ]);
  print.table(columns, rows);
  if (value.next_cursor !== null) print.remark(`the newest ${limit}; there are more`);
}

export function registerListCommand(program: Command, shell: Shell): void {
  const command = program
    .command('ls')
    .description('list runs, newest first')
    .addOption(new Option('-s, --state <state>', 'only runs in this state').choices(RunState.options))
    .option('-p, --pipeline <name>', 'only runs of this pipeline')
    .option('-l, --label <name=value>', 'only runs with this label')
    .option('-n, --limit <n>', 'at most so many', readLimit, 20)
    .addHelpText('after', '\nExample:\n  capstan ls --state failed --label batch=7')
    .action((options: LsOptions) => list(options, shell));
  addCommonOptions(command);
}
