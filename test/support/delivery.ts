/** The context of deliveries, with a Temporal stub that knows nothing by default. */

import { neverFrozen } from '@capstan/core/call/freezes';
import { pino } from 'pino';
import type { RunWorkflows } from '../../src/clients/temporal/run-workflows.ts';
import type { TemporalSchedules } from '../../src/clients/temporal/schedules.ts';
import type { Db } from '../../src/db/connect.ts';
import type { DeliveryCtx } from '../../src/parts/delivery/deliveries.ts';
import { createStartMarks } from '../../src/parts/delivery/start-marks.ts';
import { newId } from '../../src/parts/ids.ts';
import { aCallingKey, aProject, aRun } from './factories.ts';
import { fakeWorkflows } from './run-workflows.ts';

interface KnownTemporal {
  readonly workflows?: Partial<RunWorkflows>;
  readonly schedules?: Partial<TemporalSchedules>;
  /** The ids of its keys; default: none. */
  readonly payloadKeys?: readonly string[];
}

export function aDeliveryCtx(
  db: Db,
  { workflows = {}, schedules = {}, payloadKeys = [] }: KnownTemporal = {},
  engineVersion = 3,
): DeliveryCtx {
  return {
    db,
    logger: pino({ level: 'silent' }),
    freezes: neverFrozen,
    config: {
      HEARTBEAT_TIMEOUT_MS: 1_000,
      LEASE_MS: 30_000,
      ENGINE_VERSION: engineVersion,
      HISTORY_EVENTS: 4_096,
    },
    temporal: {
      workflows: fakeWorkflows(workflows),
      schedules: {
        put: async () => undefined,
        remove: async () => undefined,
        trigger: async () => 'gone',
        list: async function* () {},
        standing: async () => ({ paused: null }),
        isStarting: async () => false,
        ...schedules,
      },
      payloadKeys,
    },
    outbox: new Map(),
    markStart: createStartMarks(db, payloadKeys),
    publicUrl: () => 'http://capstan.test',
    consoleUrl: () => 'http://capstan.test/ui/',
  };
}

/** Temporal has forgotten everything and accepts nothing: repeated deliveries stay due. */
export const forgetful: KnownTemporal = {
  workflows: { isForgotten: async () => true, start: away, startEscalation: async () => away() },
  schedules: { standing: async () => null, put: away },
};

async function away(): Promise<never> {
  throw new Error('Temporal is away');
}

function hourAgo(): Date {
  return new Date(Date.now() - 3_600_000);
}

/** Runs, ladders without a run and schedules that Temporal accepted an hour ago. */
export async function someDelivered(
  db: Db,
  count: Readonly<Record<'runs' | 'ladders' | 'schedules', number>>,
) {
  const { project_id } = await aProject(db);
  for (let n = 0; n < count.runs; n++) {
    const { run_id } = await aRun(db, { project_id });
    await db('run').where({ run_id }).update({ start_delivered_at: hourAgo() });
  }
  for (let n = 0; n < count.ladders; n++) {
    const empty = { ladder: '{}', model_spec: '{}', job_type: 'summary', prompt: 'p', escalation_level: 2 };
    const escalation_id = newId('escalation');
    await db('escalation').insert({
      ...empty,
      caller: aCallingKey(),
      escalation_id,
      project_id,
      start_delivered_at: hourAgo(),
    });
  }
  for (let n = 0; n < count.schedules; n++) {
    const schedule_id = newId('schedule');
    const names = { schedule_id, project_id, workflow_id: `p/${schedule_id}`, created_by: 'key_1' };
    const body = JSON.stringify({ name: schedule_id, pipeline: 'p', cron: '0 3 * * *', catch_up: '1m' });
    const told = { version: 1, delivered_version: 1, updated_at: hourAgo() };
    await db('schedule').insert({ ...names, ...told, name: schedule_id, body });
  }
}
