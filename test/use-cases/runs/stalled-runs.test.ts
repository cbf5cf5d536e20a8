/** Runs whose workflow cannot make progress show that, as long as it is true, and can be cancelled. */
import { beforeEach, expect, test } from 'vitest';
import type { RunWorkflows } from '../../../src/clients/temporal/run-workflows.ts';
import { requestCancel } from '../../../src/db/run/run-control.ts';
import { forgetStart } from '../../../src/db/run/run-delivery.ts';
import { readRun } from '../../../src/db/run/run-list.ts';
import { createStallWatch } from '../../../src/use-cases/runs/repair.ts';
import { useDatabase } from '../../support/database.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { aClaim, anInstance, aRun, claimAttempt, type StoredRun } from '../../support/factories.ts';

const { db } = useDatabase();
beforeEach(() => db.raw('truncate run cascade'));

async function anOpenRun(row: object = {}): Promise<StoredRun> {
  const run = await aRun(db);
  const start_delivered_at = db.raw(`clock_timestamp() - interval '1 minute'`);
  await db('run')
    .where({ run_id: run.run_id })
    .update({ start_delivered_at, state: 'running', ...row });
  return run;
}

const since = new Date('2026-11-28T05:00:00Z');

/** A watch over workflows, of which some fail. */
function aWatch(messages: ReadonlyMap<string, string>, payloadKeys: readonly string[] = []) {
  const asked: string[] = [];
  const ended: string[] = [];
  const workflows: Partial<RunWorkflows> = {
    findTaskFault: async ({ run_id }) => {
      asked.push(run_id);
      const message = messages.get(run_id);
      return message === undefined ? null : { message, since };
    },
    terminate: async ({ run_id }) => {
      ended.push(run_id);
      return 'ended';
    },
  };
  return { watch: createStallWatch(aDeliveryCtx(db, { workflows, payloadKeys })), asked, ended };
}

async function stalledOf({ project_id, run_id }: StoredRun) {
  return (await readRun(db, project_id, run_id))?.stalled;
}

test('a run whose workflow task keeps failing shows why and since when, until it continues', async () => {
  const [stuck, waiting] = [await anOpenRun(), await anOpenRun()];
  const messages = new Map([[stuck.run_id, 'the key "k1" of PAYLOAD_KEYS']]);
  const { watch } = aWatch(messages);
  expect(await watch()).toBe(1);
  expect(await stalledOf(stuck)).toEqual({
    message: 'the key "k1" of PAYLOAD_KEYS',
    since: since.toISOString(),
  });
  expect(await stalledOf(waiting)).toBeNull();
  expect(await watch()).toBe(0);
  messages.set(stuck.run_id, 'another one');
  expect(await watch()).toBe(1);
  expect(await stalledOf(stuck)).toMatchObject({ message: 'another one' });
  messages.clear();
  expect(await watch()).toBe(0);
  expect(await stalledOf(stuck)).toBeNull();
});

test('only runs in which nothing happens are asked about, and those that do not end', async () => {
  const idle = await anOpenRun();
  const [calling, leaving, young, ended] = [
    await anOpenRun(),
    await anOpenRun({ cancel_delivered_at: db.raw(`clock_timestamp() - interval '1 minute'`) }),
    await anOpenRun({ start_delivered_at: db.fn.now() }),
    await anOpenRun({ state: 'succeeded', finished_at: db.fn.now() }),
  ];
  const instance = await anInstance(db);
  for (const run of [calling, leaving]) await claimAttempt(db, aClaim(run, instance));
  const { watch, asked } = aWatch(new Map());
  await watch();
  expect(new Set(asked)).toEqual(new Set([idle.run_id, leaving.run_id]));
  expect(asked).not.toContain(young.run_id);
  expect(asked).not.toContain(ended.run_id);
});

test('of many idle runs each is asked about in turn, those that are known to stall each time', async () => {
  const runs: StoredRun[] = [];
  for (let n = 0; n < 3; n++) runs.push(await anOpenRun());
  await db.raw(
    `insert into run select (jsonb_populate_record(r, jsonb_build_object('run_id', r.run_id || n))).*
     from run r, generate_series(1, 60) n`,
  );
  const known = runs[2] as StoredRun;
  const stalled = JSON.stringify({ message: 'x', since: since.toISOString() });
  await db('run').where({ run_id: known.run_id }).update({ stalled });
  const { watch, asked } = aWatch(new Map([[known.run_id, 'x']]));
  for (let tick = 0; tick < 2; tick++) await watch();
  expect(new Set(asked).size).toBe(183);
  expect(asked.filter((id) => id === known.run_id)).toHaveLength(2);
});

const missing = (id: string, have: string) =>
  `a payload in Temporal is encrypted by the key "${id}" of PAYLOAD_KEYS; ${have}`;

test('all open runs whose payload key is missing show that at once, also those that wait, until it is back', async () => {
  const now = { start_delivered_at: db.fn.now() };
  const old = [
    await anOpenRun({ payload_key: 'k0', ...now }),
    await anOpenRun({ payload_key: 'k0', state: 'queued' }),
  ];
  const [other, plain] = [await anOpenRun({ payload_key: 'k1', ...now }), await anOpenRun()];
  const ended = await anOpenRun({ payload_key: 'k0', finished_at: db.fn.now() });
  const without = aWatch(new Map([[plain.run_id, 'a newer worker is needed']]));
  expect(await without.watch()).toBe(4);
  const first = await stalledOf(old[0] as StoredRun);
  expect(first).toEqual({
    message: missing('k0', 'there is none'),
    missing_key: 'k0',
    since: expect.any(String),
  });
  for (const run of old) expect(await stalledOf(run)).toMatchObject({ missing_key: 'k0' });
  expect(await stalledOf(other)).toMatchObject({
    message: missing('k1', 'there is none'),
    missing_key: 'k1',
  });
  expect(await stalledOf(plain)).toEqual({ message: 'a newer worker is needed', since: since.toISOString() });
  expect(await stalledOf(ended)).toBeNull();
  expect(await without.watch()).toBe(0);
  expect(new Set(without.asked)).toEqual(new Set([plain.run_id]));

  const withOne = aWatch(new Map(), ['k2', 'k1']);
  expect(await withOne.watch()).toBe(2);
  expect(await stalledOf(old[0] as StoredRun)).toEqual({
    ...first,
    message: missing('k0', 'there are k2, k1'),
  });
  for (const run of [other, plain]) expect(await stalledOf(run)).toBeNull();
  expect(withOne.asked).toContain(plain.run_id);

  expect(await aWatch(new Map(), ['k1', 'k0']).watch()).toBe(0);
  for (const run of old) expect(await stalledOf(run)).toBeNull();
});

test('a run whose payload key is missing can be cancelled, and needs none when Temporal has forgotten it', async () => {
  const [left, forgotten] = [await anOpenRun({ payload_key: 'k0' }), await anOpenRun({ payload_key: 'k0' })];
  const { watch, ended } = aWatch(new Map([[left.run_id, missing('k0', 'there is none')]]));
  await watch();
  await requestCancel(db, left, { reason: null, mode: 'graceful', by: 'key_1' });
  await db('run')
    .where({ run_id: left.run_id })
    .update({ cancel_delivered_at: db.raw(`clock_timestamp() - interval '6 seconds'`) });
  await forgetStart(db, forgotten.run_id);
  expect(await watch()).toBe(1);
  expect(ended).toEqual([left.run_id]);
  expect(await stalledOf(forgotten)).toBeNull();
});

test('a cancelled run that cannot receive it is ended, with its workflow', async () => {
  const run = await anOpenRun();
  await requestCancel(db, run, { reason: null, mode: 'graceful', by: 'key_1' });
  const { watch, ended } = aWatch(new Map([[run.run_id, 'no key']]));
  await watch(); // Temporal has not accepted the cancel yet
  expect(ended).toEqual([]);
  await db('run').update({ cancel_delivered_at: db.raw(`clock_timestamp() - interval '6 seconds'`) });
  expect(await watch()).toBe(1);
  expect(ended).toEqual([run.run_id]);
  const row = await readRun(db, run.project_id, run.run_id);
  expect(row).toMatchObject({
    state: 'cancelled',
    error: {
      code: 'run_cancelled',
      message: 'cancelled; its workflow could not make progress and was terminated',
    },
  });
});
