/** `schedules`: runs that start by the calendar. The text form shows the next start, the pipeline and the job. */

import { momentsOf, openZone } from '@capstan/core/calendar/zone';
import { Priority } from '@capstan/core/contracts/primitives';
import {
  Backfill,
  BackfillList,
  OverlapPolicy,
  Schedule,
  type ScheduleGap,
  ScheduleGapList,
  ScheduleList,
} from '@capstan/core/contracts/schedule';
import { writeJson } from '@capstan/core/json/text';
import { type ApiClient, emptyBody, getAll, jsonBody, path } from '../client/api-client.ts';
import { command, group, listed, oneOf, parsed, type Register, required } from '../command.ts';
import { UsageError } from '../errors.ts';
import { budgetOption, collectPair, jobHelp, readItem } from '../input/arguments.ts';
import { readJob } from '../input/run-request.ts';
import { formatUsd } from '../render/formats.ts';
import type { Columns, Printer } from '../render/print.ts';

/** The pipeline of a schedule, with its version or alias. */
function targetOf({ pipeline, version, alias }: Schedule): string {
  return `${pipeline}@${version ?? alias ?? 'latest'}`;
}

function standingOf({ paused, paused_in_temporal, delivered }: Schedule): string {
  if (paused) return 'paused';
  if (paused_in_temporal !== undefined) return 'paused in Temporal';
  return delivered ? 'active' : 'waits for Temporal';
}

/** In the schedule's own time zone, with its offset, to match the calendar line. */
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

function renderLastStart({ last_start, timezone }: Schedule): string[] {
  if (last_start === null) return [];
  const { scheduled_at, state, run_id, error } = last_start;
  const reason = error === null ? '' : `  ${error.code}: ${error.message}`;
  return [`last start ${formatTime(scheduled_at, timezone)}  ${run_id}  ${state}${reason}`];
}

function renderSkipped({ skipped, timezone }: Schedule): string[] {
  if (skipped === null) return [];
  const { count, scheduled_at, reason } = skipped;
  return [`skipped ${count}, the latest ${formatTime(scheduled_at, timezone)}: ${reason}`];
}

function renderSchedule(schedule: Schedule, { style }: Printer): string[] {
  const { budget_ceiling_usd: ceiling, labels = {}, next_at, timezone } = schedule;
  const labelled = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return [
    `${style.bold(schedule.name)}  ${schedule.schedule_id}  ${standingOf(schedule)}`,
    `starts ${targetOf(schedule)} at "${schedule.cron}" in ${timezone}`,
    ...optional('paused in Temporal:', schedule.paused_in_temporal),
    `overlap ${schedule.overlap}, catch-up ${schedule.catch_up}`,
    ...optional('priority', schedule.priority),
    ...optional('budget', ceiling === undefined ? undefined : formatUsd(ceiling)),
    ...optional('labels', labelled.length === 0 ? undefined : labelled.join(' ')),
    `job ${writeJson(schedule.job)}`,
    ...renderLastStart(schedule),
    ...renderSkipped(schedule),
    ...(next_at.length === 0 ? [] : [style.bold('next')]),
    ...next_at.map((at) => `  ${formatTime(at, timezone)}`),
  ];
}

const scheduleTable: Columns<Schedule> = [
  ['SCHEDULE', 'schedule_id'],
  ['NAME', 'name', 'shrinks'],
  ['PIPELINE', targetOf, 'shrinks'],
  ['CRON', 'cron'],
  ['ZONE', 'timezone', 'shrinks'],
  ['STATE', standingOf],
  ['LAST', ({ last_start }) => last_start?.state ?? ''],
  ['NEXT', ({ next_at: [next], timezone }) => (next === undefined ? '' : formatTime(next, timezone))],
];

function listAll(client: ApiClient) {
  return getAll(client, '/v1/schedules', ScheduleList);
}

async function findNamed(client: ApiClient, wanted: string): Promise<Schedule | undefined> {
  return (await listAll(client)).value.items.find(({ name }) => name === wanted);
}

/** @param reference an id, or a name */
async function resolveId(client: ApiClient, reference: string): Promise<string> {
  if (reference.startsWith('sch_')) return reference;
  const found = await findNamed(client, reference);
  if (found === undefined) throw new UsageError(`there is no schedule named ${reference}`);
  return found.schedule_id;
}

const dayMs = 86_400_000;

/** The first moment of a date. @param date its midnight as if in UTC */
function startOf(date: number, timezone: string): number {
  const offsets = openZone(timezone).offsetsOn(date);
  return momentsOf(date, offsets)[0] ?? offsets.turn;
}

/** A date begins with its first moment in the zone of the schedule, and ends with its last one, or now. */
function toMoment(text: string, timezone: string, end: 'first' | 'last'): string {
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw new UsageError(`${text} is no date and no moment; write 2026-01-31`);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return new Date(at).toISOString();
  const first = startOf(at, timezone);
  const last = startOf(at + dayMs, timezone) - 1;
  const now = Date.now();
  const ending = first <= now ? Math.min(last, now) : last;
  return new Date(end === 'first' ? first : ending).toISOString();
}

function renderBackfill({ backfill_id, state, moments, existing, left, runs, waits }: Backfill): string[] {
  const { open, succeeded, failed, cancelled } = runs;
  return [
    `${backfill_id}  ${state}  ${moments - left} of ${moments} moments`,
    `runs: ${open} open, ${succeeded} succeeded, ${failed} failed, ${cancelled} cancelled; ${existing} moments had one`,
    ...(waits === null ? [] : [`waits: ${waits}`]),
  ];
}

const backfillTable: Columns<Backfill> = [
  ['BACKFILL', 'backfill_id'],
  ['FROM', 'from'],
  ['UNTIL', 'until'],
  ['STATE', 'state'],
  ['MOMENTS', ({ moments, left }) => `${moments - left}/${moments}`, 'right'],
  ['OPEN', ({ runs }) => String(runs.open), 'right'],
  ['FAILED', ({ runs }) => String(runs.failed), 'right'],
  ['WAITS', ({ waits }) => waits ?? '', 'shrinks'],
];

const gapTable: Columns<ScheduleGap> = [
  ['NOTICED', 'at'],
  ['OUTCOME', 'outcome'],
  ['STARTS', ({ count }) => String(count), 'right'],
  ['FIRST', ({ moments: [first] }) => first ?? ''],
  ['REASON', 'reason', 'shrinks'],
];

const scheduleArgument = { '<schedule>': 'its id or its name' } as const;

const addCommand = command('add', {
  about: 'start runs of a stored pipeline by the calendar',
  example: 'capstan schedules add nightly trailer --cron "30 4 * * mon-fri"',
  args: { '<name>': 'of the schedule', '<pipeline>': 'name of a stored pipeline' },
  options: {
    '-c, --cron <cron>': required('minute hour day month weekday, or @hourly, @daily, @weekly, …'),
    '-z, --timezone <zone>': 'IANA name, such as Europe/Berlin (default: UTC)',
    '-v, --version <version>': 'version of the pipeline (default: the latest at every start)',
    '-a, --alias <alias>': 'instead of a version; looked up at every start',
    '-j, --job <job>': jobHelp,
    '-p, --priority <priority>': oneOf('who may wait', Priority.options),
    '-l, --label <name=value>': parsed('label its runs (repeatable)', collectPair),
    '--overlap <policy>': oneOf('when the previous run is still open (default: skip)', OverlapPolicy.options),
    '--catch-up <duration>': 'make up for missed starts that are not older (default: 1m)',
    '--paused': 'start nothing until it is resumed',
    '--budget <usd>': budgetOption('the most that one run may cost'),
    '--replace':
      'replace the one of this name, if it exists; omitted options get their defaults, but a pause stays',
  },
  call: async (session, { job, budget, label, catchUp, replace, ...same }) => {
    const { name, pipeline, version, alias, cron, timezone, priority, overlap } = same;
    const replaced = replace === true ? await findNamed(session.client, name) : undefined;
    const paused = same.paused ?? replaced?.paused;
    const body = {
      name,
      pipeline,
      version,
      alias,
      cron,
      timezone,
      priority,
      overlap,
      paused,
      job: await readJob(session, { target: '', job }),
      budget_ceiling_usd: budget,
      labels: label,
      catch_up: catchUp,
    };
    return replaced === undefined
      ? session.client.post('/v1/schedules', Schedule, jsonBody(body))
      : session.client.put(path`/v1/schedules/${replaced.schedule_id}`, Schedule, jsonBody(body));
  },
  show: (schedule, { print }) => {
    print.line(schedule.schedule_id);
    const [next] = schedule.next_at;
    const standing =
      next === undefined || !schedule.delivered
        ? standingOf(schedule)
        : `next at ${formatTime(next, schedule.timezone)}`;
    print.remark(`${schedule.name}: ${standing}`);
  },
});

function actCommand(act: 'pause' | 'resume' | 'trigger', about: string, done: string): Register {
  return command(act, {
    about,
    example: `capstan schedules ${act} nightly`,
    args: scheduleArgument,
    call: async ({ client }, { schedule }) => {
      const id = await resolveId(client, schedule);
      return client.post(path`/v1/schedules/${id}/${act}`, Schedule, jsonBody({}));
    },
    show: ({ name, delivered, last_start }, { print }) => {
      print.line(`${done} ${name}`);
      if (act === 'trigger' && last_start?.state === 'queued') print.remark(last_start.run_id);
      if (!delivered) print.remark('sent to Temporal when it is available again');
    },
  });
}

export const registerSchedulesCommand = group('schedules', 'start runs by the calendar', [
  command('ls', {
    about: 'list schedules by name, with the next start of each',
    example: 'capstan schedules ls',
    isDefault: true,
    call: ({ client }) => listAll(client),
    show: listed(scheduleTable, { none: 'no schedules' }),
  }),
  addCommand,
  command('show', {
    about: 'show a schedule and its next starts',
    example: 'capstan schedules show nightly',
    args: scheduleArgument,
    call: async ({ client }, { schedule }) =>
      client.get(path`/v1/schedules/${await resolveId(client, schedule)}`, Schedule),
    show: (schedule, { print }) => print.lines(renderSchedule(schedule, print)),
  }),
  actCommand('pause', 'start nothing until it is resumed', 'paused'),
  actCommand('resume', 'start runs again, also if it was paused in Temporal', 'resumed'),
  actCommand('trigger', 'ask for a run now, as far as the overlap policy allows', 'triggered'),
  command('history', {
    about: 'list the starts that came to nothing: skipped by the settings, or missed in an outage',
    example: 'capstan schedules history nightly',
    args: scheduleArgument,
    call: async ({ client }, { schedule }) =>
      client.get(path`/v1/schedules/${await resolveId(client, schedule)}/history`, ScheduleGapList, {
        limit: 50,
      }),
    show: listed(gapTable, { none: 'every start of the last 90 days came about' }),
  }),
  command('backfill', {
    about: 'start it for every moment of a range in the past that has no run, oldest first',
    example: 'capstan schedules backfill nightly --from 2026-01-01 --until 2026-01-31 --at-once 2',
    args: scheduleArgument,
    options: {
      '--from <moment>': required('first date or moment, such as 2026-01-01 or 2026-01-01T04:30:00Z'),
      '--until <moment>': required('last date, which counts as a whole, or last moment'),
      '--at-once <n>': parsed('how many of its runs are open at a time (default: 1)', readItem),
    },
    call: async ({ client }, { schedule, from, until, atOnce: at_once }) => {
      const id = await resolveId(client, schedule);
      const { value } = await client.get(path`/v1/schedules/${id}`, Schedule);
      const { timezone } = value;
      const range = {
        from: toMoment(from, timezone, 'first'),
        until: toMoment(until, timezone, 'last'),
        at_once,
      };
      return client.post(path`/v1/schedules/${id}/backfills`, Backfill, jsonBody(range));
    },
    show: (backfill, { print }, { schedule }) => {
      print.lines(renderBackfill(backfill));
      print.remark(`see its progress: capstan schedules backfills ${schedule}`);
    },
  }),
  command('backfills', {
    about: 'list its backfills with their progress',
    example: 'capstan schedules backfills nightly',
    args: scheduleArgument,
    call: async ({ client }, { schedule }) =>
      client.get(path`/v1/schedules/${await resolveId(client, schedule)}/backfills`, BackfillList, {
        limit: 50,
      }),
    show: listed(backfillTable, { none: 'no backfills' }),
  }),
  command('cancel-backfill', {
    about: 'start nothing more of a backfill; its open runs continue',
    example: 'capstan schedules cancel-backfill nightly bkf_…',
    args: { ...scheduleArgument, '<backfill>': 'as `schedules backfills` shows it' },
    call: async ({ client }, { schedule, backfill }) => {
      const id = await resolveId(client, schedule);
      return client.post(path`/v1/schedules/${id}/backfills/${backfill}/cancel`, Backfill, emptyBody);
    },
    show: (backfill, { print }) => print.lines(renderBackfill(backfill)),
  }),
  command('rm', {
    about: 'remove a schedule; runs that it has started continue',
    example: 'capstan schedules rm nightly',
    args: scheduleArgument,
    call: async ({ client }, { schedule }) =>
      client.remove(path`/v1/schedules/${await resolveId(client, schedule)}`),
    show: (_, { print }, { schedule }) => print.line(`removed ${schedule}`),
  }),
]);
