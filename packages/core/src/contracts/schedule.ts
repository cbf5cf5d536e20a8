/** Runs that start by the calendar. Temporal's schedules start them; the row in our database is the truth. */
import { z } from 'zod';
import {
  Duration,
  Failure,
  Instant,
  JsonObject,
  Labels,
  listOf,
  PipelineName,
  Priority,
  Timezone,
  Usd,
  VersionText,
} from './primitives.ts';
import { notBoth } from './rules.ts';
import { RunState } from './run.ts';

/**
 * The syntax of a calendar line as the pattern of a JSON Schema. A pattern cannot express that a range must not end
 * before it begins, or that a day must exist in one of the months. `readCron` checks that, and names the invalid field.
 */
const step = '(?:/(?:[1-9]\\d{0,3}|0[1-9]\\d{0,2}|00[1-9]\\d?|000[1-9]))?';

/** A list of numbers, names or ranges. */
function fieldOf(value: string): string {
  const part = `(?:\\*|${value}(?:-${value})?)${step}`;
  return `${part}(?:,${part})*`;
}

/** JSON Schema patterns have no flag for case-insensitive matching. */
function inAnyCase(names: string): string {
  return names.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}

const months = inAnyCase('jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec');
const weekdays = inAnyCase('sun|mon|tue|wed|thu|fri|sat');

const fields = [
  fieldOf('0{0,2}[0-5]?\\d'),
  fieldOf('0{0,2}(?:[01]?\\d|2[0-3])'),
  fieldOf('0{0,2}(?:0?[1-9]|[12]\\d|3[01])'),
  fieldOf(`(?:0{0,2}(?:0?[1-9]|1[0-2])|${months})`),
  fieldOf(`(?:0{0,3}[0-7]|${weekdays})`),
];

export const cronPattern = `^\\s*(?:@(?:hourly|daily|midnight|weekly|monthly|yearly|annually)|${fields.join('\\s+')})\\s*$`;

/** What happens if the previous run is still open. */
export const OverlapPolicy = z
  .enum(['skip', 'buffer_one', 'buffer_all', 'cancel_other', 'allow_all'])
  .meta({ id: 'OverlapPolicy' });
export type OverlapPolicy = z.infer<typeof OverlapPolicy>;

const oneChoice = notBoth('alias', 'version');

const scheduleFields = {
  name: PipelineName,
  pipeline: PipelineName,
  version: VersionText.optional(),
  /** Instead of a version; resolved at every start. Default: latest. */
  alias: PipelineName.optional(),
  cron: z.string().min(1).max(256).meta({
    description:
      'Five fields (minute, hour, day, month, weekday) or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually. A range does not end before it begins, and the day exists in one of the months. Where day and weekday are both given, either is enough.',
    pattern: cronPattern,
  }),
  timezone: Timezone.default('UTC'),
  job: JsonObject.default({}),
  priority: Priority.optional(),
  budget_ceiling_usd: Usd.optional(),
  labels: Labels.optional(),
  overlap: OverlapPolicy.default('skip'),
  catch_up: Duration.default('1m').meta({
    description:
      'If Temporal was unavailable, missed starts that are not older than this are started late: 10s to 365d.',
  }),
  paused: z.boolean().default(false),
};

/** Body of `POST /v1/schedules` and `PUT /v1/schedules/{id}`. */
export const ScheduleRequest = z
  .strictObject(scheduleFields)
  .check(oneChoice.check)
  .meta({ id: 'ScheduleRequest', ...oneChoice.schema });
export type ScheduleRequest = z.infer<typeof ScheduleRequest>;

export const Schedule = z
  .strictObject({
    schedule_id: z.string(),
    ...scheduleFields,
    /** True when Temporal has the last change. */
    delivered: z.boolean(),
    /** Present while it is paused in Temporal: the reason that was given there. */
    paused_in_temporal: z.string().optional(),
    /** At most five; empty while it is paused. */
    next_at: z.array(Instant),
    /** The latest start, with its run; a refused or missed start is a run that failed. */
    last_start: z
      .strictObject({
        scheduled_at: Instant,
        run_id: z.string(),
        state: RunState,
        error: Failure.nullable(),
      })
      .nullable(),
    /** Starts that made no run because of the overlap policy or a pause in Temporal: how many, and the latest of them. */
    skipped: z.strictObject({ count: z.int(), scheduled_at: Instant, reason: z.string() }).nullable(),
    created_at: Instant,
    updated_at: Instant,
  })
  .meta({ id: 'Schedule' });
export type Schedule = z.infer<typeof Schedule>;

export const ScheduleList = listOf(Schedule).meta({ id: 'ScheduleList' });
export type ScheduleList = z.infer<typeof ScheduleList>;

/** Body of `POST /v1/schedules/{id}/backfills`. */
export const BackfillRequest = z
  .strictObject({
    from: Instant.meta({ description: 'The first moment of the range.' }),
    until: Instant.meta({ description: 'The last moment of the range, not after now.' }),
    at_once: z.number().int().min(1).max(100).default(1).meta({
      description: 'How many runs of the backfill are open at a time.',
    }),
  })
  .meta({ id: 'BackfillRequest' });
export type BackfillRequest = z.infer<typeof BackfillRequest>;

export const BackfillState = z.enum(['running', 'done', 'cancelled']).meta({ id: 'BackfillState' });
export type BackfillState = z.infer<typeof BackfillState>;

/** Starts of a schedule for a range of its calendar, oldest first. Each moment has one run. */
export const Backfill = z
  .strictObject({
    backfill_id: z.string(),
    schedule_id: z.string(),
    from: Instant,
    until: Instant,
    at_once: z.int(),
    state: BackfillState,
    /** Moments of the calendar in the range. */
    moments: z.int(),
    /** Those that had a run before. */
    existing: z.int(),
    /** Its runs by how they are. A start that was refused is a failed run. */
    runs: z.strictObject({ open: z.int(), succeeded: z.int(), failed: z.int(), cancelled: z.int() }),
    /** The moments that are left. */
    left: z.int(),
    /** Why the next start waits; null: it does not. */
    waits: z.string().nullable(),
    /** The key or person. */
    created_by: z.string(),
    created_at: Instant,
    finished_at: Instant.nullable(),
  })
  .meta({ id: 'Backfill' });
export type Backfill = z.infer<typeof Backfill>;
export const BackfillList = listOf(Backfill).meta({ id: 'BackfillList' });

/** Starts of one reason that made no run, or only a failed one: skipped by the settings, or missed in an outage. */
export const ScheduleGap = z
  .strictObject({
    gap_id: z.string(),
    outcome: z.enum(['skipped', 'missed']),
    reason: z.string(),
    count: z.int(),
    /** The moments of the calendar, oldest first, at most 100. */
    moments: z.array(Instant),
    at: Instant,
  })
  .meta({ id: 'ScheduleGap' });
export type ScheduleGap = z.infer<typeof ScheduleGap>;
export const ScheduleGapList = listOf(ScheduleGap).meta({ id: 'ScheduleGapList' });
