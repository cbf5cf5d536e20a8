/** Steps that wait for outside events, and the events that are sent to them, on a real database (V1 to V4). */
import { mostKeptEvents } from '@capstan/core/contracts/outside-event';
import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { expect, test } from 'vitest';
import { finishRun } from '../../../src/db/run/run.ts';
import { pauseRun, requestCancel, resumeRun } from '../../../src/db/run/run-control.ts';
import { purgeEvents } from '../../../src/db/step/event-wait.ts';
import { recordChanges } from '../../../src/db/step/step-progress.ts';
import { listWakes } from '../../../src/db/step/step-wait.ts';
import { createOwnMedia } from '../../../src/parts/media/own-media.ts';
import { sendEvent } from '../../../src/use-cases/outside-events/sending.ts';
import { aProject, aRun, type StoredRun } from '../../support/factories.ts';
import { stepsOf, useSteps } from '../../support/steps.ts';

const world = useSteps();
const { db } = world;

let names = 0;
/** Each test has an event of its own. */
function aName(): string {
  names += 1;
  return `paid-${names}`;
}

type Event = NonNullable<StepDefinition['event']>;

function aRunOf(
  event: Event,
  { more = [], ...run }: { more?: readonly StepDefinition[]; job?: JsonObject } = {},
) {
  return aRun(db, { ...stepsOf([{ id: 'a', event }, ...more]), project_id: world.projectId(), ...run });
}

function execute(run: StoredRun, step_id = 'a', more: object = {}) {
  return world.newWorker().execute(run, { step_id, ...more });
}

async function awaits(run: StoredRun, step_id = 'a', more: object = {}): Promise<void> {
  expect(await execute(run, step_id, more)).toMatchObject({ kind: 'waiting', awaiting: 'event' });
}

interface Sent {
  readonly key?: string;
  readonly id?: string;
  readonly payload?: Json;
}

function send(name: string, { payload = null, ...request }: Sent = {}, project_id = world.projectId()) {
  const ctx = { ...world.newWorker().ctx, ownMedia: createOwnMedia(db) };
  return sendEvent(ctx, { project_id, sent_by: 'key_1', name, request: { ...request, payload } });
}

const refusalOf = (sent: Promise<unknown>) =>
  sent.then(
    () => null,
    ({ code, message }: { code: string; message: string }) => [code, message],
  );

async function wakesOf({ run_id }: StoredRun): Promise<string[]> {
  const wakes = (await listWakes(db, 10_000)).filter((wake) => wake.run_id === run_id);
  return wakes.map(({ step_id, item }) => `${step_id}/${item}`).sort();
}

async function logOf(run: StoredRun): Promise<string[]> {
  return (await world.eventsOf(run)).filter((line) => line.startsWith('step.'));
}

const ended = (output: Json) => ({ kind: 'succeeded', output });

test('every step that waits takes the event, with its wake, and no other step does', async () => {
  const name = aName();
  const [one, two, other] = [
    await aRunOf({ name, key: '{{ job.order }}' }, { job: { order: 7 } }),
    await aRunOf({ name, key: '7' }),
    await aRunOf({ name, key: '8' }),
  ];
  for (const run of [one, two, other]) await awaits(run);
  const receipt = await send(name, { key: '7', payload: { sum: 12.5 } });
  expect(receipt).toMatchObject({ name, key: '7', waiting: 2, refused_by: [], repeated: false });
  for (const run of [one, two]) {
    expect(await wakesOf(run)).toEqual(['a/0']);
    expect(await execute(run, 'a', { resumed: true })).toMatchObject(ended({ sum: 12.5 }));
    expect(await logOf(run)).toEqual(['step.started a', 'step.waiting a', 'step.succeeded a']);
  }
  expect(await wakesOf(other)).toEqual([]);
  await awaits(other, 'a', { resumed: true });
});

test('it is an event of its project alone', async () => {
  const name = aName();
  const run = await aRunOf({ name });
  await awaits(run);
  const { project_id } = await aProject(db);
  expect(await send(name, { payload: 'foreign' }, project_id)).toMatchObject({ waiting: 0 });
  await awaits(run, 'a', { resumed: true });
  const later = await aRunOf({ name });
  await awaits(later);
});

test('kept, it is for the first step of a later run, and for each step of the runs that were open', async () => {
  const name = aName();
  const open = [await aRunOf({ name }), await aRunOf({ name })] as const;
  expect(await send(name, { payload: 1 })).toMatchObject({ waiting: 0 });
  const later = [await aRunOf({ name }), await aRunOf({ name })] as const;
  expect(await execute(later[0])).toMatchObject(ended(1));
  await awaits(later[1]);
  for (const run of open) expect(await execute(run)).toMatchObject(ended(1));
  expect(await logOf(open[0])).toEqual(['step.started a', 'step.succeeded a']);
});

test('an event that was given is for the open runs whose step did not wait yet', async () => {
  const name = aName();
  const [waits, open] = [await aRunOf({ name }), await aRunOf({ name })];
  await awaits(waits);
  expect(await send(name, { payload: 1 })).toMatchObject({ waiting: 1 });
  expect(await execute(open)).toMatchObject(ended(1));
  await awaits(await aRunOf({ name }));
});

test('a step does not take the event of a step before it; a step beside it does', async () => {
  const name = aName();
  const more: StepDefinition[] = [
    { id: 'beside', event: { name } },
    { id: 'between', wait: '1s', depends_on: ['a'] },
    { id: 'after', event: { name }, depends_on: ['between'] },
  ];
  const run = await aRunOf({ name }, { more });
  await awaits(run);
  await send(name, { payload: 1 });
  expect(await execute(run, 'beside')).toMatchObject(ended(1));
  await awaits(run, 'after');
  await send(name, { payload: 2 });
  expect(await execute(run, 'after', { resumed: true })).toMatchObject(ended(2));
});

test('a payload that no waiting step takes is refused, with what was seen, and is not kept', async () => {
  const name = aName();
  const schema = { type: 'object', required: ['sum'], properties: { sum: { type: 'number', minimum: 1 } } };
  const run = await aRunOf({ name, schema });
  await awaits(run);
  for (const [payload, fault] of [
    [{ sum: 'much' }, '/sum must be number'],
    [{ sum: 0 }, '/sum must be >= 1'],
    ['12', 'must be object'],
  ] as const) {
    const [code, message] = (await refusalOf(send(name, { payload, id: 'e-1' }))) ?? [];
    expect([code, message]).toEqual(['request_invalid', expect.stringContaining(fault)]);
    expect(message).toContain(`step a of run ${run.run_id}`);
  }
  await awaits(run, 'a', { resumed: true });
  expect(await db('outside_event').where({ name })).toEqual([]);
  expect(await send(name, { payload: { sum: 2 }, id: 'e-1' })).toMatchObject({ waiting: 1, repeated: false });
});

test('of several schemas, those that match take it, and the sender sees the others', async () => {
  const name = aName();
  const [number, text] = [
    await aRunOf({ name, schema: { type: 'number' } }),
    await aRunOf({ name, schema: { type: 'string' } }),
  ];
  for (const run of [number, text]) await awaits(run);
  expect(await send(name, { payload: 4 })).toMatchObject({
    waiting: 1,
    refused_by: [{ run_id: text.run_id, step_id: 'a', message: expect.stringContaining('must be string') }],
  });
  expect(await execute(number, 'a', { resumed: true })).toMatchObject(ended(4));
  await awaits(text, 'a', { resumed: true });
});

test('a kept event whose payload does not match is passed over', async () => {
  const name = aName();
  await send(name, { payload: 'none' });
  await send(name, { payload: 3 });
  expect(await execute(await aRunOf({ name, schema: { type: 'number' } }))).toMatchObject(ended(3));
  expect(await execute(await aRunOf({ name }))).toMatchObject(ended('none'));
});

test('the same id is one delivery, also of two senders at once', async () => {
  const name = aName();
  const run = await aRunOf({ name });
  await awaits(run);
  const both = await Promise.all([1, 2].map((payload) => send(name, { id: 'e-1', payload })));
  expect(new Set(both.map(({ event_id }) => event_id)).size).toBe(1);
  expect(both.map(({ waiting }) => waiting)).toEqual([1, 1]);
  expect(both.map(({ repeated }) => repeated).sort()).toEqual([false, true]);
  const later = await aRunOf({ name });
  await awaits(later);
  expect(await send(name, { id: 'e-1' })).toMatchObject({ waiting: 1, repeated: true });
  await awaits(later, 'a', { resumed: true });
  expect(await send(aName(), { id: 'e-1' })).toMatchObject({ repeated: false });
});

test('sent while steps begin to wait, it reaches each of them', async () => {
  const name = aName();
  const runs = await Promise.all(Array.from({ length: 12 }, () => aRunOf({ name })));
  const worker = world.newWorker();
  const [, ...ends] = await Promise.all([
    send(name, { payload: 5 }),
    ...runs.map((run) => worker.execute(run, 'a')),
  ]);
  const again = await Promise.all(runs.map((run) => worker.execute(run, { step_id: 'a', resumed: true })));
  expect(ends.length).toBe(12);
  expect(again).toEqual(runs.map(() => expect.objectContaining(ended(5))));
});

test('items wait for the events of their keys', async () => {
  const name = aName();
  const step = { id: 'a', event: { name, key: '{{ item.id }}' }, for_each: { items: '{{ job.list }}' } };
  const job = { list: [{ id: 'x' }, { id: 2 }, { id: 'x' }] };
  const run = await aRun(db, { ...stepsOf([step]), project_id: world.projectId(), job });
  for (const item of [1, 2, 3]) await awaits(run, 'a', { item });
  expect(await send(name, { key: 'x', payload: 'both' })).toMatchObject({ waiting: 2 });
  expect(await send(name, { key: '2', payload: 'one' })).toMatchObject({ waiting: 1 });
  expect(await wakesOf(run)).toEqual(['a/1', 'a/2', 'a/3']);
  expect(await execute(run, 'a', { item: 2, resumed: true })).toMatchObject(ended('one'));
});

test.each([
  ['fail', { kind: 'failed', error: { code: 'step_timeout' } }],
  ['continue', { kind: 'succeeded', output: null }],
] as const)('after its time, it takes no event: on_timeout %s', async (on_timeout, end) => {
  const name = aName();
  const run = await aRunOf({ name, key: 'k', timeout: '1h', on_timeout });
  await awaits(run);
  const past = db.raw(`clock_timestamp() - interval '1 second'`);
  await db('step').where({ run_id: run.run_id }).update({ wait_until: past });
  expect(await send(name, { key: 'k' })).toMatchObject({ waiting: 0 });
  expect(await execute(run, 'a', { resumed: true })).toMatchObject(end);
  const row = await db('step').where({ run_id: run.run_id }).first();
  expect(row).toMatchObject({ awaited_event: null, awaited_key: null, awaiting: null });
});

test('it comes during a pause of the run, and the step has it before the run is resumed', async () => {
  const name = aName();
  const run = await aRunOf({ name });
  await awaits(run);
  const key = { run_id: run.run_id, project_id: world.projectId() };
  expect(await pauseRun(db, key)).toBe(true);
  expect(await send(name, { payload: 1 })).toMatchObject({ waiting: 1 });
  expect(await send(name, { payload: 2 })).toMatchObject({ waiting: 0 });
  expect(await resumeRun(db, key)).toBe(true);
  expect(await execute(run, 'a', { resumed: true })).toMatchObject(ended(1));
  expect(await logOf(run)).toEqual(['step.started a', 'step.waiting a', 'step.succeeded a']);
});

test('a run that was cancelled takes no event: the next one takes it', async () => {
  const name = aName();
  const run = await aRunOf({ name });
  await awaits(run);
  const order = { mode: 'graceful', reason: null } as const;
  expect(await requestCancel(db, { run_id: run.run_id, project_id: world.projectId() }, order)).toBe(true);
  const end = { state: 'cancelled', output: undefined, error: null, step_ids: ['a'] } as const;
  await finishRun(db, { run_id: run.run_id, ...end });
  expect(await send(name, { payload: 1 })).toMatchObject({ waiting: 0 });
  expect(await execute(run, 'a', { resumed: true })).toMatchObject({ kind: 'cancelled' });
  expect(await execute(await aRunOf({ name }))).toMatchObject(ended(1));
});

test('a step that was given up takes no event', async () => {
  const name = aName();
  const run = await aRunOf({ name });
  await awaits(run);
  await recordChanges(db, run.run_id, [{ step_id: 'a', item: 0, state: 'cancelled' }]);
  expect(await send(name)).toMatchObject({ waiting: 0 });
  expect(await execute(run, 'a', { resumed: true })).toMatchObject({ kind: 'cancelled' });
});

test.each([
  ['{{ job.missing }}', 'event.key'],
  ['{{ job.list }}', 'a list'],
  ['{{ job.empty }}', 'one of 0 characters'],
  ['{{ job.long }}', 'one of 257 characters'],
])('the key %s fails the step', async (key, seen) => {
  const job = { list: [1], empty: '', long: 'k'.repeat(257) };
  const end = await execute(await aRunOf({ name: aName(), key }, { job }));
  expect(end).toMatchObject({
    kind: 'failed',
    error: { code: 'expression_unresolved', message: expect.stringContaining(seen) },
  });
});

test('a project keeps so many events that no step has taken; those of a day ago are deleted', async () => {
  const { project_id } = await aProject(db);
  const name = aName();
  await db.raw(
    `insert into outside_event (event_id, project_id, name, key, payload, bytes, sent_by, created_at)
     select 'evt_' || n, ?, 'full', '', 'null', 4, 'key_1',
       clock_timestamp() - interval '25 hours' * (n % 2) from generate_series(1, ?) n`,
    [project_id, mostKeptEvents],
  );
  const [code, message] = (await refusalOf(send(name, {}, project_id))) ?? [];
  expect([code, message]).toEqual([
    'limit_reached',
    expect.stringContaining(`keeps ${mostKeptEvents} events`),
  ]);
  expect(await purgeEvents(db)).toBe(mostKeptEvents / 2);
  expect(await send(name, {}, project_id)).toMatchObject({ waiting: 0 });
});

test('a file of another project is refused', async () => {
  const [code] = (await refusalOf(send(aName(), { payload: { file: 'media://job_foreign/a.wav' } }))) ?? [];
  expect(code).toBe('media_unknown');
});
