import type { Command } from 'commander';
import { RerunPreview, Run } from '../../contracts/run.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { addBudgetOption, readDurationMs } from '../input/option-values.ts';
import { resolveRunId, runPath } from '../input/run-reference.ts';
import { readJob } from '../input/run-request.ts';
import type { Column } from '../render/table.ts';
import type { Shell } from '../shell.ts';
import { watchRun } from '../watch/watch-run.ts';

interface RerunOptions extends CommonOptions {
  readonly from?: string;
  readonly onlyFailed?: boolean;
  readonly job?: string;
  readonly version?: string;
  readonly budget?: number;
  readonly preview?: boolean;
  readonly timeout?: number;
  readonly watch?: boolean;
  readonly idempotencyKey?: string;
}

const columns: readonly Column[] = [{ header: 'STEP' }, { header: '' }, { header: 'WHY', shrinks: true }];

function splitIds(text: string | undefined): string[] | undefined {
  const ids = text?.split(',').map((id) => id.trim());
  if (ids?.some((id) => id === '')) throw new UsageError('--from takes step ids, separated by commas');
  return ids;
}

async function toBody(session: Session, { job, ...options }: RerunOptions) {
  return {
    from: splitIds(options.from),
    only_failed: options.onlyFailed,
    job: job === undefined ? undefined : await readJob(session, { job, target: '' }),
    version: options.version,
    budget_ceiling_usd: options.budget,
  };
}

async function showPreview(session: Session, path: string, body: object): Promise<void> {
  const { client, print, json } = session;
  const { value, text } = await client.post(path, RerunPreview, jsonBody({ ...body, preview: true }));
  if (json) return print.json(text);
  const { style } = print;
  print.table(columns, [
    ...value.reused.map((id) => [id, style.dim('✓ kept'), '']),
    ...value.executed.map(({ id, reason }) => [id, style.cyan('● again'), reason]),
  ]);
}

async function rerun(reference: string, options: RerunOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  const { client, print, json } = session;
  const path = runPath(await resolveRunId(client, reference), '/rerun');
  const body = await toBody(session, options);
  if (options.preview === true) return showPreview(session, path, body);
  const { value, text } = await client.post(path, Run, jsonBody(body, options.idempotencyKey));
  if (options.watch === true || options.timeout !== undefined) {
    print.remark(`run ${value.run_id}`);
    return shell.exitWith(await watchRun(session, value.run_id, options.timeout));
  }
  if (json) return print.json(text);
  const kept = value.steps.filter(({ state }) => state === 'reused').length;
  print.line(value.run_id);
  print.remark(
    `${kept} of ${value.steps.length} results are kept; watch it: capstan show ${value.run_id} --watch`,
  );
}

const example = `
Without --from and --only-failed every step happens again. A result is kept only if its step, the values of
the job that it mentions and all that it depends on are the same, and the files that it names are there.

Example:
  capstan rerun @latest --only-failed --preview`;

export function registerRerunCommand(program: Command, shell: Shell): void {
  const command = program
    .command('rerun')
    .description('run once more, keeping the results that still hold')
    .argument('<run>', 'run id, or @latest')
    .option(
      '--from <ids>',
      'these steps and all that depends on them happen again; others keep their results',
    )
    .option('--only-failed', 'steps that succeeded keep their results')
    .option('-j, --job <job>', 'another job: a file, - for stdin, or inline JSON')
    .option('-v, --version <version>', 'another version of the stored pipeline')
    .option('--preview', 'only say which steps would happen again, and why')
    .option('-w, --watch', 'watch it to its end; exits like run --watch')
    .option('--timeout <duration>', 'watch it, but at most this long; the run goes on', readDurationMs)
    .option('--idempotency-key <key>', 'the same key starts the run once')
    .addHelpText('after', example)
    .action((reference: string, options: RerunOptions) => rerun(reference, options, shell));
  addBudgetOption(command, 'the most that the new run may cost (default: as the run that it repeats)');
  addCommonOptions(command);
}
