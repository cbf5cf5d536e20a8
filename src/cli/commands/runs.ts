/**
 * Runs that there are: `ls`, `show`, `open` and `events` look at them, `pause`, `resume`, `budget` and `cancel`
 * steer them.
 */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import { EventPage, type RunEvent } from '../../contracts/event.ts';
import { Run, RunList, RunState, StepDetail } from '../../contracts/run.ts';
import { jsonBody } from '../client/api-client.ts';
import {
  addCommonOptions,
  type CommonOptions,
  linkToConsole,
  openBrowser,
  openSession,
  type Session,
} from '../client/session.ts';
import { exitCodes, UsageError } from '../errors.ts';
import {
  getRun,
  latestRun,
  readItem,
  readLimit,
  readUsd,
  resolveRunId,
  runPath,
} from '../input/arguments.ts';
import {
  formatAge,
  formatRunState,
  formatSpan,
  formatState,
  formatStepCounts,
  formatUsd,
} from '../render/formats.ts';
import type { Column } from '../render/print.ts';
import { renderStepDetail } from '../render/step-detail.ts';
import type { Shell } from '../shell.ts';
import { followEvents, formatEvent } from '../watch/events.ts';
import { showRun } from '../watch/run-table.ts';
import { watchRun } from '../watch/watch-run.ts';

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

interface EventsOptions extends CommonOptions {
  readonly follow?: boolean;
}

/** With --json one document per event. */
async function follow({ client, print, json, shell }: Session, runId: string): Promise<void> {
  const stop = new AbortController();
  const release = shell.onInterrupt(() => stop.abort());
  try {
    for await (const event of followEvents(client, runId, { signal: stop.signal })) {
      if (json) print.json(JSON.stringify(event));
      else print.line(formatEvent(event, print.style));
    }
  } finally {
    release();
  }
  if (stop.signal.aborted) shell.exitWith(exitCodes.interrupted);
}

async function readPages({ client }: Session, runId: string): Promise<EventPage> {
  const items: RunEvent[] = [];
  let cursor: string | null = null;
  do {
    const query: Record<string, string | number> = cursor === null ? { limit: 200 } : { cursor, limit: 200 };
    const { value } = await client.get(runPath(runId, '/events'), EventPage, query);
    items.push(...value.items);
    cursor = value.next_cursor;
  } while (cursor !== null);
  return { items, next_cursor: cursor };
}

async function showEvents(reference: string, options: EventsOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  const runId = await resolveRunId(session.client, reference);
  if (options.follow === true) return follow(session, runId);
  const page = await readPages(session, runId);
  const { print } = session;
  if (session.json) return print.json(JSON.stringify(page));
  print.lines(page.items.map((event) => formatEvent(event, print.style)));
}

export function registerEventsCommand(program: Command, shell: Shell): void {
  const command = program
    .command('events')
    .description("print a run's log")
    .argument('[run]', 'run id, or @latest', latestRun)
    .option('-f, --follow', 'go on until the run ends')
    .addHelpText('after', '\nExample:\n  capstan events @latest -f')
    .action((reference: string, options: EventsOptions) => showEvents(reference, options, shell));
  addCommonOptions(command);
}

/** `pause` and `resume`: the one takes back the other. */
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
