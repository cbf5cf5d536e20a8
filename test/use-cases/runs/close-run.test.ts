import type { Json } from '@capstan/core/contracts/primitives';
import { noTelemetry } from '@capstan/core/telemetry/telemetry';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { readReview } from '../../../src/db/review/review.ts';
import { createRunContexts } from '../../../src/parts/definitions/run-context.ts';
import { createStepResults } from '../../../src/parts/definitions/step-results.ts';
import { openReview } from '../../../src/use-cases/reviews/opening.ts';
import { closeReported, closeRun, type RunClosing } from '../../../src/use-cases/runs/closing.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aRun, type StoredRun } from '../../support/factories.ts';

let database: TestDatabase;
let db: Db;
beforeAll(async () => {
  database = await createTestDatabase();
  db = connectDatabase(database.url, 4);
});
afterAll(async () => {
  await db.destroy();
  await database.drop();
});

it('the end of a run ends what it has asked people, and nothing of other runs', async () => {
  const runs = [await aRun(db), await aRun(db)] as const;
  const reviews = await Promise.all(
    runs.map(({ run_id, project_id }) =>
      openReview(db, {
        project_id,
        kind: 'escalation',
        reason: 'r',
        due_in_ms: 60_000,
        payload: {},
        run_id,
        step_id: 'a',
        item: 0,
        escalation_id: `esc_${run_id}`,
      }),
    ),
  );
  const error = { code: 'run_cancelled', message: 'cancelled' };
  await closerOf(db)({ run_id: runs[0].run_id, outcome: 'cancelled', error, has_waited: true });
  const states = await Promise.all(
    reviews.map(async ({ review_id }) => (await readReview(db, review_id))?.state),
  );
  expect(states).toEqual(['cancelled', 'open']);
});

function closerOf(db: Db) {
  const [contexts, results] = [createRunContexts(db), createStepResults(db)];
  return (closing: RunClosing) => closeRun({ db, contexts, results, telemetry: noTelemetry }, closing);
}

/** With the steps `fan`, of two items, and `last`, which has ended. */
function aFanRun(output?: Json) {
  const steps = [
    { id: 'fan', capability: 'x', for_each: { items: [1, 2] } },
    { id: 'last', capability: 'x' },
  ];
  return aRun(db, { definition: { steps, ...(output === undefined ? {} : { output }) } });
}

function store({ run_id }: StoredRun, text = '"two"') {
  return db('step').insert([
    { run_id, step_id: 'last', item: 0, state: 'succeeded', output: '{"n": 1}' },
    { run_id, step_id: 'fan', item: 0, state: 'succeeded', items: 2 },
    { run_id, step_id: 'fan', item: 2, state: 'succeeded', output: text },
    { run_id, step_id: 'fan', item: 1, state: 'failed' },
  ]);
}

async function endOf({ run_id }: StoredRun) {
  const end = await closerOf(db)({ run_id, outcome: 'succeeded', error: null });
  return { ...end, ...(await db('run').where({ run_id }).first('state', 'output')) };
}

it.each([
  ['its last steps', undefined, { fan: [null, 'two'], last: { n: 1 } }],
  [
    'its expressions',
    { all: '{{ steps.fan.output }}', of: '{{ steps.last.output.n }}' },
    { all: [null, 'two'], of: 1 },
  ],
])('the output of a run is that of %s, lists of items included', async (_, output, expected) => {
  const run = await aFanRun(output);
  await store(run);
  expect(await endOf(run)).toMatchObject({ outcome: 'succeeded', state: 'succeeded', output: expected });
});

it('a run whose output cannot be worked out fails', async () => {
  const run = await aFanRun('{{ steps.last.output.none }}');
  await store(run);
  const error = { code: 'expression_unresolved', message: expect.stringContaining('output: steps.last') };
  expect(await endOf(run)).toMatchObject({ outcome: 'failed', error, state: 'failed', output: null });
});

/** With the step `fan`, of items of about 1 MB, and `last`, which has ended. */
async function aLargeRun(output?: Json, items = 20) {
  const run = await aFanRun(output);
  const { run_id } = run;
  await db('step').insert([
    { run_id, step_id: 'last', item: 0, state: 'succeeded', output: '{"n": 1}' },
    { run_id, step_id: 'fan', item: 0, state: 'succeeded', items },
  ]);
  await db.raw(
    `insert into step (run_id, step_id, item, state, output)
     select ?, 'fan', i, 'succeeded', json_build_object('name', 'n' || i, 'of', json_build_object('id', i, 'more', 'm'),
       'blob', repeat('x', 1000000)) from generate_series(1, ?::int) i where i <> 3`,
    [run_id, items],
  );
  return run;
}

function reference(run_id: string, bytes: number = expect.any(Number)) {
  return { $too_large: { step: 'fan', bytes, href: `/v1/runs/${run_id}/steps/fan` } };
}

it('the largest of the last steps are given by reference, until the others fit', async () => {
  const run = await aLargeRun();
  const end = await endOf(run);
  expect(end).toMatchObject({
    outcome: 'succeeded',
    state: 'succeeded',
    output: { fan: reference(run.run_id), last: { n: 1 } },
  });
  expect(end.output.fan.$too_large.bytes).toBeGreaterThan(19_000_000);
  const small = await aLargeRun(undefined, 15);
  expect((await endOf(small)).output.fan).toHaveLength(15);
});

it.each<[string, Json, (run_id: string) => Json]>([
  ['the length of a list', { n: '{{ steps.fan.output | length }}' }, () => ({ n: 20 })],
  ['an item', '{{ steps.fan.output[6].name }}', () => 'n7'],
  [
    'the first and the last',
    ['{{ steps.fan.output | first | length }}', '{{ (steps.fan.output ?? []) | last | keys }}'],
    () => [3, ['name', 'of', 'blob']],
  ],
  ['fields of all items', '{{ steps.fan.output[*].of.id | length }}', () => 20],
  ['a failed item', '{{ steps.fan.output[2] ?? "none" }}', () => 'none'],
  ['an item that there is not', '{{ steps.fan.output[20] ?? "none" }}', () => 'none'],
  [
    'fields by map',
    { ids: '{{ steps.fan.output | map("of") | map("id") | slice(0, 4) }}' },
    () => ({ ids: [1, 2, null, 4] }),
  ],
])('of a large list, %s can be read', async (_, output, expected) => {
  const run = await aLargeRun(output);
  expect(await endOf(run)).toMatchObject({ outcome: 'succeeded', output: expected(run.run_id) });
});

it.each<[string, Json, (run_id: string) => Json]>([
  ['all', '{{ steps.fan.output }}', reference],
  [
    'one member',
    {
      all: '{{ steps.fan.output }}',
      n: '{{ steps.fan.output | length }}',
      last: '{{ steps.last.output.n }}',
    },
    (run_id) => ({ all: reference(run_id), n: 20, last: 1 }),
  ],
  [
    'the largest of several members',
    {
      blobs: '{{ steps.fan.output[*].blob }}',
      one: '{{ steps.fan.output[0] }}',
      sorted: '{{ steps.fan.output | reverse }}',
    },
    (run_id) => ({ blobs: reference(run_id), one: { name: 'n1' } as Json, sorted: reference(run_id) }),
  ],
])('of a declared output, %s is given by reference where it is too large', async (_, output, expected) => {
  const run = await aLargeRun(output);
  expect(await endOf(run)).toMatchObject({ outcome: 'succeeded', output: expected(run.run_id) });
});

it('members that fit alone and not together are given by reference from the largest on', async () => {
  const output = {
    some: '{{ steps.fan.output | slice(0, 9) }}',
    first: ['{{ steps.fan.output[0] }}', '{{ steps.fan.output[1] }}'],
    n: 7,
  };
  const run = await aLargeRun({ ...output, also: output.first }, 15);
  expect((await endOf(run)).output).toMatchObject({ some: { length: 9 }, n: 7 });
});

it('the end of a run is one statement: remembered values are not read again', async () => {
  const run = await aRun(db);
  const contexts = createRunContexts(db);
  const results = createStepResults(db);
  await contexts.open(run.run_id);
  results.remember(run.run_id, 'c', { output: { n: 7 }, costUsd: 0 });
  const asked: string[] = [];
  const note = ({ sql }: { readonly sql: string }): void => void asked.push(sql);
  db.on('query', note);
  const ctx = { db, contexts, results, telemetry: noTelemetry };
  await closeRun(ctx, { run_id: run.run_id, outcome: 'succeeded', error: null });
  db.off('query', note);
  expect(asked).toEqual([expect.stringContaining('with finished as')]);
  const row = await db('run').where({ run_id: run.run_id }).first('state', 'output');
  expect(row).toEqual({ state: 'succeeded', output: { c: { n: 7 } } });
});

it('sizes are those of what is in memory and of what is stored', async () => {
  const run = await aRun(db);
  const results = createStepResults(db);
  results.remember(run.run_id, 'a', { output: 'x'.repeat(1_000), costUsd: 0 });
  await db('step').insert({
    run_id: run.run_id,
    step_id: 'b',
    item: 0,
    state: 'succeeded',
    output: JSON.stringify('y'.repeat(2_000)),
  });
  const sizes = await results.sizesOf(run.run_id, ['a', 'b', 'c']);
  expect([...sizes]).toEqual([
    ['a', expect.closeTo(1_000, -3)],
    ['b', 2_002],
  ]);
});

it('a success without an end of each step that has begun is none: an activity was completed past Capstan', async () => {
  const [contexts, results] = [createRunContexts(db), createStepResults(db)];
  const close = (closing: RunClosing) =>
    closeReported({ db, contexts, results, telemetry: noTelemetry }, closing);
  const steps = [
    { id: 'a', capability: 'x' },
    { id: 'b', capability: 'x', depends_on: ['a'] },
  ];
  const ends = [];
  for (const states of [
    ['succeeded', 'succeeded'],
    ['running', 'succeeded'],
    ['succeeded', 'waiting'],
    ['succeeded'],
  ]) {
    const run = await aRun(db, { definition: { steps } });
    for (const [at, state] of states.entries()) {
      await db('step').insert({ run_id: run.run_id, step_id: steps[at]?.id, state, output: '1' });
    }
    const closing = { run_id: run.run_id, outcome: 'succeeded', error: null } as const;
    const { outcome, error } = await close(closing);
    await close(closing); // again, it changes nothing
    const row = await db('run').where({ run_id: run.run_id }).first('state', 'error');
    ends.push({ outcome, message: error?.message, state: row.state, stored: row.error?.code });
  }
  const failed = (step: string) => ({
    outcome: 'failed',
    message: `completed in Temporal by hand, without a result: ${step}`,
    state: 'failed',
    stored: 'run_terminated',
  });
  const succeeded = { outcome: 'succeeded', message: undefined, state: 'succeeded', stored: undefined };
  expect(ends).toEqual([succeeded, failed('a'), failed('b'), succeeded]);
});
