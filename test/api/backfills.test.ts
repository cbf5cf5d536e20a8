/** Backfills: every moment of a range has one run, at its own pace, through the real maintenance. */
import type { Backfill, Schedule } from '@capstan/core/contracts/schedule';
import { noTelemetry } from '@capstan/core/telemetry/telemetry';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { finishRun } from '../../src/db/run/run.ts';
import { readSchedule } from '../../src/db/schedule.ts';
import { recordFruitlessStart } from '../../src/use-cases/schedules/scheduled-runs.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({ MAINTENANCE_MS: 50 });
  const definition = { pipeline: 'night', version: '1', steps: [{ id: 'a', wait: '1d' }] };
  expect((await api.call('/v1/pipelines', { body: definition })).status).toBe(201);
});
afterAll(() => api.close());

let made = 0;

async function aSchedule(body: object = {}): Promise<Schedule> {
  made += 1;
  const request = { name: `nightly-${made}`, pipeline: 'night', cron: '0 4 * * *', job: {}, ...body };
  const [status, schedule] = await readJson<Schedule>(api.call('/v1/schedules', { body: request }));
  expect(status).toBe(201);
  return schedule;
}

/** The first days of January 2026. */
async function backfill({ schedule_id }: Schedule, days: number, more: object = {}): Promise<Backfill> {
  const body = { from: '2026-01-01T00:00:00Z', until: `2026-01-0${days}T23:00:00Z`, ...more };
  const path = `/v1/schedules/${schedule_id}/backfills`;
  const [status, answer] = await readJson<Backfill>(api.call(path, { body }));
  expect([status, answer]).toEqual([201, expect.anything()]);
  return answer;
}

async function show({ schedule_id, backfill_id }: Backfill): Promise<Backfill> {
  return (await readJson<Backfill>(api.call(`/v1/schedules/${schedule_id}/backfills/${backfill_id}`)))[1];
}

function runsOf({ schedule_id }: Pick<Schedule, 'schedule_id'>) {
  return api
    .db('run')
    .where({ schedule_id })
    .orderBy('scheduled_at')
    .select('run_id', 'scheduled_at', 'finished_at', 'state');
}

async function endOpen(schedule: Pick<Schedule, 'schedule_id'>): Promise<number> {
  const open = (await runsOf(schedule)).filter(({ finished_at }) => finished_at === null);
  for (const { run_id } of open)
    await finishRun(api.db, { run_id, state: 'succeeded', output: null, error: null, step_ids: ['a'] });
  return open.length;
}

function untilOpen(schedule: Pick<Schedule, 'schedule_id'>, count: number): Promise<boolean> {
  return waitFor(`${count} open runs`, async () => {
    const open = (await runsOf(schedule)).filter(({ finished_at }) => finished_at === null);
    return open.length === count;
  });
}

describe('a backfill', () => {
  test.each([
    [1, [1, 1, 1]],
    [2, [2, 1]],
    [50, [3]],
  ])(
    'with %i at once starts every moment, oldest first, and never more at a time',
    async (at_once, rounds) => {
      const schedule = await aSchedule();
      const asked = await backfill(schedule, 3, { at_once });
      expect(asked).toMatchObject({ state: 'running', moments: 3, at_once });
      for (const count of rounds) {
        await untilOpen(schedule, count);
        expect(await endOpen(schedule)).toBe(count);
      }
      await waitFor('its end', async () => (await show(asked)).state === 'done');
      expect(await show(asked)).toMatchObject({
        left: 0,
        existing: 0,
        runs: { open: 0, succeeded: 3 },
        waits: null,
      });
      const starts = (await runsOf(schedule)).map(({ scheduled_at }) => scheduled_at.toISOString());
      expect(starts).toEqual([1, 2, 3].map((day) => `2026-01-0${day}T04:00:00.000Z`));
    },
  );

  test('that is asked for twice gives each moment one run', async () => {
    const schedule = await aSchedule();
    const both = [await backfill(schedule, 4, { at_once: 9 }), await backfill(schedule, 5, { at_once: 9 })];
    await untilOpen(schedule, 5);
    await endOpen(schedule);
    await waitFor('both ends', async () =>
      (await Promise.all(both.map(show))).every(({ state }) => state === 'done'),
    );
    expect((await runsOf(schedule)).length).toBe(5);
    expect((await Promise.all(both.map(show))).map(({ existing }) => existing)).toEqual([0, 4]);
  });

  test('that is cancelled starts nothing more, and its open run continues', async () => {
    const schedule = await aSchedule();
    const asked = await backfill(schedule, 5);
    await untilOpen(schedule, 1);
    const path = `/v1/schedules/${asked.schedule_id}/backfills/${asked.backfill_id}/cancel`;
    const [, cancelled] = await readJson<Backfill>(api.call(path, { method: 'POST' }));
    expect(cancelled).toMatchObject({ state: 'cancelled', runs: { open: 1 }, left: 4 });
    expect((await readJson<Backfill>(api.call(path, { method: 'POST' })))[1]).toEqual(cancelled);
    await endOpen(schedule);
    const next = await aSchedule();
    await backfill(next, 1);
    await untilOpen(next, 1); // the duty has turned since
    expect((await runsOf(schedule)).length).toBe(1);
  });

  test('gives a moment that was missed in an outage its run', async () => {
    const schedule = await aSchedule();
    const row = await readSchedule(api.db, schedule.schedule_id);
    const error = { code: 'start_missed', message: 'Temporal was away' };
    const ctx = { db: api.db, telemetry: noTelemetry };
    if (row !== undefined)
      await recordFruitlessStart(ctx, row, {
        scheduled_at: '2026-01-02T04:00:00.000Z',
        outcome: 'missed',
        error,
      });
    const asked = await backfill(schedule, 2, { at_once: 5 });
    await untilOpen(schedule, 2);
    expect(await show(asked)).toMatchObject({ existing: 0, left: 0 });
  });

  test('ends with its schedule', async () => {
    const schedule = await aSchedule();
    const asked = await backfill(schedule, 5);
    await untilOpen(schedule, 1);
    expect((await api.call(`/v1/schedules/${schedule.schedule_id}`, { method: 'DELETE' })).status).toBe(204);
    await waitFor('its end', async () => {
      const found = await api.db('backfill').where({ backfill_id: asked.backfill_id }).first('state');
      return found === undefined || found.state === 'cancelled';
    });
    expect((await runsOf(schedule)).length).toBe(1);
  });

  test('whose starts are refused has a failed run for each, with the reason', async () => {
    const schedule = await aSchedule();
    await api
      .db('schedule')
      .where({ schedule_id: schedule.schedule_id })
      .update({ body: { ...schedule, version: '9' } });
    const asked = await backfill(schedule, 2);
    await waitFor('its end', async () => (await show(asked)).state === 'done');
    expect(await show(asked)).toMatchObject({ runs: { failed: 2 }, left: 0 });
  });

  test.each([
    [{ until: '2999-01-01T00:00:00Z' }, 'is in the future'],
    [{ until: '2025-01-01T00:00:00Z' }, 'is before from'],
    [{ from: '2026-01-01T05:00:00Z', until: '2026-01-01T06:00:00Z' }, 'has no start'],
    [{ from: '1950-01-01T00:00:00Z' }, 'more than five years'],
    [{ at_once: 0 }, '>=1'],
  ])('is refused for %j', async (range, message) => {
    const schedule = await aSchedule();
    const body = { from: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z', ...range };
    const path = `/v1/schedules/${schedule.schedule_id}/backfills`;
    const [status, problem] = await readJson(api.call(path, { body }));
    expect([status, problem.errors?.[0]?.message]).toEqual([422, expect.stringContaining(message)]);
  });

  test('is refused for too many starts', async () => {
    const { schedule_id } = await aSchedule({ cron: '* * * * *' });
    const body = { from: '2026-01-01T00:00:00Z', until: '2026-01-08T00:00:00Z' };
    const [status, problem] = await readJson(api.call(`/v1/schedules/${schedule_id}/backfills`, { body }));
    expect([status, problem.errors?.[0]?.message]).toEqual([422, expect.stringContaining('more than 10000')]);
  });
});
