/**
 * Schedules in Temporal: it wakes at the planned moments, and knows what to do when a start meets the one before. Each
 * start is a workflow `scheduledRun`. All may be repeated: an existing schedule is replaced, a deleted one stays
 * deleted.
 */

import type { StartPlan, UtcCalendar } from '@capstan/core/calendar/starts';
import type { OverlapPolicy } from '@capstan/core/contracts/schedule';
import type { ScheduledRunInput } from '@capstan/core/workflow-payloads';
import {
  type CalendarSpec,
  type Client,
  MONTHS,
  ScheduleClient,
  type ScheduleDescription,
  ScheduleNotFoundError,
  type ScheduleOptions,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { encodeScheduleOverlapPolicy } from '@temporalio/client/lib/schedule-types.js';
import { type DataConverter, defaultPayloadConverter } from '@temporalio/common';
import { type Bounded, hasStatus } from './connection.ts';

export interface ScheduleOrder {
  readonly project_id: string;
  readonly schedule_id: string;
  /** The workflow id of the schedule and of its starts. */
  readonly workflow_id: string;
  readonly name: string;
  readonly pipeline: string;
  /** The calendar in words, for people. */
  readonly calendar: string;
  readonly starts: StartPlan;
  readonly overlap: OverlapPolicy;
  readonly catch_up_ms: number;
  readonly paused: boolean;
  /** It is the state that Temporal has already; if a person paused it there, it stays paused. */
  readonly keeps_pause: boolean;
}

export interface TemporalStanding {
  /** The reason that was given when it was paused there; null: it is active. */
  readonly paused: string | null;
}

export type ScheduleRef = Pick<ScheduleOrder, 'workflow_id'>;

export interface TemporalSchedules {
  put(order: ScheduleOrder): Promise<void>;
  remove(key: ScheduleRef): Promise<void>;
  /**
   * Starts now, as its overlap policy allows. gone: Temporal does not know the schedule.
   * @param requestId a repeated request with the same id starts nothing more
   */
  trigger(key: ScheduleRef, overlap: OverlapPolicy, requestId: string): Promise<'asked' | 'gone'>;
  /** Ids of schedules of the namespace, `<pipeline>/<schedule_id>`, as far as the visibility store knows. */
  list(): AsyncIterable<string>;
  /** Whether the start of a scheduled time has begun and has not ended. */
  isStarting(key: ScheduleRef, at: Date, ms: number): Promise<boolean>;
  /** Null: Temporal does not know the schedule. @param ms how long the answer may take */
  standing(key: ScheduleRef, ms: number): Promise<TemporalStanding | null>;
}

/** A start that is to be skipped is started too: the row decides and counts it (use-cases/schedules). */
const overlaps = {
  skip: 'ALLOW_ALL',
  buffer_one: 'BUFFER_ONE',
  buffer_all: 'BUFFER_ALL',
  cancel_other: 'CANCEL_OTHER',
  allow_all: 'ALLOW_ALL',
} as const satisfies Record<OverlapPolicy, string>;

/** A delivery holds a connection of the database meanwhile. */
const answerMs = 5_000;

function toCalendarSpec({ year, month, days, hours, minutes }: UtcCalendar): CalendarSpec {
  return {
    year,
    month: MONTHS[month - 1] ?? 'JANUARY',
    dayOfMonth: [...days],
    hour: [...hours],
    minute: [...minutes],
  };
}

function toSpec(starts: StartPlan): ScheduleOptions['spec'] {
  if ('lines' in starts) return { cronExpressions: [...starts.lines], timezone: starts.timezone };
  return { calendars: starts.calendars.map(toCalendarSpec) };
}

function toOptions(order: ScheduleOrder, taskQueue: string) {
  const { project_id, schedule_id, name, pipeline, calendar, overlap, catch_up_ms, paused } = order;
  const input: ScheduledRunInput = { project_id, schedule_id };
  return {
    scheduleId: order.workflow_id,
    spec: toSpec(order.starts),
    action: {
      type: 'startWorkflow',
      workflowType: 'scheduledRun',
      workflowId: order.workflow_id,
      taskQueue,
      args: [input],
      staticSummary: `${name} starts ${pipeline}`,
    },
    policies: { overlap: overlaps[overlap], catchupWindow: catch_up_ms },
    state: { paused, note: `${name} starts ${pipeline} at ${calendar}` },
  } satisfies ScheduleOptions;
}

/** @returns whether Temporal knows it */
async function reach(call: () => Promise<unknown>): Promise<boolean> {
  try {
    await call();
    return true;
  } catch (error) {
    if (error instanceof ScheduleNotFoundError || hasStatus(error, 'notFound')) return false;
    throw error;
  }
}

/**
 * Makes a converter that writes like the given one and reads null: this client looks at no payload, so it needs no
 * key.
 */
function toWriting({ payloadCodecs = [], ...converter }: DataConverter): DataConverter {
  const nothing = defaultPayloadConverter.toPayload(null);
  const codecs = payloadCodecs.map((codec) => ({
    encode: codec.encode.bind(codec),
    decode: async (payloads: readonly object[]) => payloads.map(() => nothing),
  }));
  return { ...converter, payloadCodecs: codecs };
}

/** `update` describes a schedule first, and reads its arguments, which may be encrypted by a key that was taken out. */
function createWritingClient({ connection, options }: Client): ScheduleClient {
  const { identity, namespace, dataConverter } = options;
  return new ScheduleClient({ connection, identity, namespace, dataConverter: toWriting(dataConverter) });
}

async function* listIds(client: ScheduleClient): AsyncGenerator<string, void, undefined> {
  for await (const { scheduleId } of client.list({ pageSize: 1_000 })) yield scheduleId;
}

/** The status of a workflow; null: Temporal does not know it. */
async function findStatus(
  describe: () => Promise<{ readonly status: { readonly name: string } }>,
): Promise<string | null> {
  try {
    return (await describe()).status.name;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

export function createSchedules(client: Client, taskQueue: string, bounded: Bounded): TemporalSchedules {
  const writing = createWritingClient(client);
  const handleOf = (key: ScheduleRef) => writing.getHandle(key.workflow_id);
  return {
    put: async (order) => {
      const { scheduleId, ...options } = toOptions(order, taskQueue);
      const change = ({ state: { paused, note } }: Pick<ScheduleDescription, 'state'>) =>
        order.keeps_pause && paused ? { ...options, state: { paused, note: note ?? '' } } : options;
      const isKnown = await reach(() => bounded(() => handleOf(order).update(change), answerMs));
      if (!isKnown) await bounded(() => writing.create({ scheduleId, ...options }), answerMs);
    },
    remove: async (key) => {
      await reach(() => bounded(() => handleOf(key).delete(), answerMs));
    },
    trigger: async ({ workflow_id: scheduleId }, overlap, requestId) => {
      const { identity, namespace } = client.options;
      const patch = { triggerImmediately: { overlapPolicy: encodeScheduleOverlapPolicy(overlaps[overlap]) } };
      const ask = () =>
        writing.workflowService.patchSchedule({ namespace, identity, scheduleId, requestId, patch });
      return (await reach(() => bounded(ask, answerMs))) ? 'asked' : 'gone';
    },
    list: () => listIds(writing),
    isStarting: async ({ workflow_id }, at, ms) => {
      const second = at.toISOString().replace(/\.\d+Z$/, 'Z');
      const handle = client.workflow.getHandle(`${workflow_id}-${second}`);
      return (await findStatus(() => bounded(() => handle.describe(), ms))) === 'RUNNING';
    },
    standing: async (key, ms) => {
      let standing: TemporalStanding = { paused: null };
      const isKnown = await reach(async () => {
        const { state } = await bounded(() => handleOf(key).describe(), ms);
        standing = { paused: state.paused ? (state.note ?? '') : null };
      });
      return isKnown ? standing : null;
    },
  };
}
