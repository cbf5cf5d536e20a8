/**
 * `schedules`: when runs start by themselves; a schedule for people says when it starts next, what, and with what.
 */

import { type Command, Option } from 'commander';
import { Priority } from '../../contracts/primitives.ts';
import { OverlapPolicy, Schedule, ScheduleList } from '../../contracts/schedule.ts';
import { type ApiClient, jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { addBudgetOption, collectPair } from '../input/arguments.ts';
import { readJob } from '../input/run-request.ts';
import { formatUsd } from '../render/formats.ts';
import type { Column, Printer } from '../render/print.ts';
import type { Shell } from '../shell.ts';

/** A schedule for people: when it starts next, what, and with what. */
function targetOf({ pipeline, version, alias }: Schedule): string {
  return `${pipeline}@${version ?? alias ?? 'latest'}`;
}

/** Why nothing is next, or what the calendar says. */
function standingOf({ paused, delivered }: Schedule): string {
  if (paused) return 'paused';
  return delivered ? 'active' : 'waits for Temporal';
}

/** In the schedule's own zone, with its offset: what a person wrote the calendar for. */
export function formatTime(at: string, timeZone: string): string {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    hourCycle: 'h23',
    timeZoneName: 'longOffset',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  });
  const parts = format.formatToParts(new Date(at)).map(({ type, value }) => [type, value] as const);
  const { year, month, day, hour, minute, timeZoneName = '' } = Object.fromEntries(parts);
  return `${year}-${month}-${day} ${hour}:${minute} ${timeZoneName.replace('GMT', '') || '+00:00'}`;
}

function optional(name: string, value: string | undefined): string[] {
  return value === undefined ? [] : [`${name} ${value}`];
}

function renderSchedule(schedule: Schedule, { style }: Printer): string[] {
  const { budget_ceiling_usd: ceiling, labels = {}, next_at, timezone } = schedule;
  const labelled = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return [
    `${style.bold(schedule.name)}  ${schedule.schedule_id}  ${standingOf(schedule)}`,
    `starts ${targetOf(schedule)} at "${schedule.cron}" in ${timezone}`,
    `overlap ${schedule.overlap}, catch-up ${schedule.catch_up}`,
    ...optional('priority', schedule.priority),
    ...optional('budget', ceiling === undefined ? undefined : formatUsd(ceiling)),
    ...optional('labels', labelled.length === 0 ? undefined : labelled.join(' ')),
    `job ${JSON.stringify(schedule.job)}`,
    ...(next_at.length === 0 ? [] : [style.bold('next')]),
    ...next_at.map((at) => `  ${formatTime(at, timezone)}`),
  ];
}

interface AddOptions extends CommonOptions {
  readonly cron: string;
  readonly timezone?: string;
  readonly version?: string;
  readonly alias?: string;
  readonly job?: string;
  readonly priority?: string;
  readonly budget?: number;
  readonly label?: Readonly<Record<string, string>>;
  readonly overlap?: string;
  readonly catchUp?: string;
  readonly paused?: boolean;
}

const columns: readonly Column[] = [
  { header: 'SCHEDULE' },
  { header: 'NAME', shrinks: true },
  { header: 'PIPELINE', shrinks: true },
  { header: 'CRON' },
  { header: 'ZONE', shrinks: true },
  { header: 'STATE' },
  { header: 'NEXT' },
];

function pathOf(id: string, act = ''): string {
  return `/v1/schedules/${encodeURIComponent(id)}${act}`;
}

async function listAll(client: ApiClient): Promise<Schedule[]> {
  const schedules: Schedule[] = [];
  let cursor: string | undefined;
  do {
    const { value } = await client.get('/v1/schedules', ScheduleList, { limit: 200, cursor });
    schedules.push(...value.items);
    cursor = value.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return schedules;
}

/** @param reference an id, or a name */
async function resolveId(client: ApiClient, reference: string): Promise<string> {
  if (reference.startsWith('sch_')) return reference;
  const found = (await listAll(client)).find(({ name }) => name === reference);
  if (found === undefined) throw new UsageError(`there is no schedule named ${reference}`);
  return found.schedule_id;
}

async function list(options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const items = await listAll(client);
  if (json) return print.json(JSON.stringify({ items, next_cursor: null }));
  if (items.length === 0) return print.remark('no schedules');
  const rows = items.map((schedule) => [
    schedule.schedule_id,
    schedule.name,
    targetOf(schedule),
    schedule.cron,
    schedule.timezone,
    standingOf(schedule),
    schedule.next_at[0] === undefined ? '' : formatTime(schedule.next_at[0], schedule.timezone),
  ]);
  print.table(columns, rows);
}

async function add(name: string, pipeline: string, options: AddOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  const { client, print, json } = session;
  const { cron, timezone, version, alias, priority, overlap, paused } = options;
  const body = jsonBody({
    name,
    pipeline,
    version,
    alias,
    cron,
    timezone,
    priority,
    overlap,
    paused,
    job: await readJob(session, { target: '', job: options.job }),
    budget_ceiling_usd: options.budget,
    labels: options.label,
    catch_up: options.catchUp,
  });
  const { value, text } = await client.post('/v1/schedules', Schedule, body);
  if (json) return print.json(text);
  print.line(value.schedule_id);
  const [next] = value.next_at;
  const remark = next === undefined ? standingOf(value) : `next at ${formatTime(next, value.timezone)}`;
  print.remark(`${value.name}: ${remark}`);
}

async function show(reference: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get(pathOf(await resolveId(client, reference)), Schedule);
  if (json) return print.json(text);
  print.lines(renderSchedule(value, print));
}

async function remove(reference: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const text = await client.remove(pathOf(await resolveId(client, reference)));
  if (!json) return print.line(`removed ${reference}`);
  if (text !== '') print.json(text);
}

function addAdd(schedules: Command, shell: Shell): void {
  const command = schedules
    .command('add')
    .description('start runs of a stored pipeline by the calendar')
    .argument('<name>', 'of the schedule')
    .argument('<pipeline>', 'name of a stored pipeline')
    .requiredOption('-c, --cron <cron>', 'minute hour day month weekday, or @hourly, @daily, @weekly, …')
    .option('-z, --timezone <zone>', 'IANA name, such as Europe/Berlin (default: UTC)')
    .option('-v, --version <version>', 'version of the pipeline (default: the latest at every start)')
    .option('-a, --alias <alias>', 'instead of a version; looked up at every start')
    .option('-j, --job <job>', 'the job: a file, - for stdin, or inline JSON such as \'{"n": 1}\'')
    .addOption(new Option('-p, --priority <priority>', 'who may wait').choices(Priority.options))
    .option('-l, --label <name=value>', 'label its runs (repeatable)', collectPair)
    .addOption(
      new Option('--overlap <policy>', 'when the run before is under way (default: skip)').choices(
        OverlapPolicy.options,
      ),
    )
    .option('--catch-up <duration>', 'make up for missed starts that are not older (default: 1m)')
    .option('--paused', 'start nothing until it is resumed')
    .addHelpText('after', '\nExample:\n  capstan schedules add nightly trailer --cron "30 4 * * mon-fri"')
    .action((name: string, pipeline: string, options: AddOptions) => add(name, pipeline, options, shell));
  addBudgetOption(command, 'the most that one run may cost');
  addCommonOptions(command);
}

interface Act {
  readonly name: 'pause' | 'resume' | 'trigger';
  readonly description: string;
  readonly done: string;
}

const acts: readonly Act[] = [
  { name: 'pause', description: 'start nothing until it is resumed', done: 'paused' },
  { name: 'resume', description: 'start runs again', done: 'resumed' },
  {
    name: 'trigger',
    description: 'ask for a run now, as far as the overlap policy allows',
    done: 'triggered',
  },
];

function addAct(schedules: Command, { name, description, done }: Act, shell: Shell): void {
  const command = schedules
    .command(name)
    .description(description)
    .argument('<schedule>', 'its id or its name')
    .addHelpText('after', `\nExample:\n  capstan schedules ${name} nightly`)
    .action(async (reference: string, options: CommonOptions) => {
      const { client, print, json } = await openSession(options, shell);
      const path = pathOf(await resolveId(client, reference), `/${name}`);
      const { value, text } = await client.post(path, Schedule, jsonBody({}));
      if (json) return print.json(text);
      print.line(`${done} ${value.name}`);
      if (!value.delivered) print.remark('Temporal is told when it is back');
    });
  addCommonOptions(command);
}

export function registerSchedulesCommand(program: Command, shell: Shell): void {
  const schedules = program.command('schedules').description('start runs by the calendar');
  const listed = schedules
    .command('ls', { isDefault: true })
    .description('list schedules by name, with the next start of each')
    .addHelpText('after', '\nExample:\n  capstan schedules ls')
    .action((options: CommonOptions) => list(options, shell));
  addCommonOptions(listed);
  addAdd(schedules, shell);
  const shown = schedules
    .command('show')
    .description('show a schedule and its next starts')
    .argument('<schedule>', 'its id or its name')
    .addHelpText('after', '\nExample:\n  capstan schedules show nightly')
    .action((reference: string, options: CommonOptions) => show(reference, options, shell));
  addCommonOptions(shown);
  for (const act of acts) addAct(schedules, act, shell);
  const removed = schedules
    .command('rm')
    .description('remove a schedule; runs that it has started go on')
    .argument('<schedule>', 'its id or its name')
    .addHelpText('after', '\nExample:\n  capstan schedules rm nightly')
    .action((reference: string, options: CommonOptions) => remove(reference, options, shell));
  addCommonOptions(removed);
}
