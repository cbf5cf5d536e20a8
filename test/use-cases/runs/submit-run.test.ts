import { randomUUID } from 'node:crypto';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { RunRequest } from '@capstan/core/contracts/run';
import type { RunPipelineInput } from '@capstan/core/workflow-payloads';
import { beforeAll, expect, test } from 'vitest';
import { anInstance } from '../../../packages/core/test/routing/a-snapshot.ts';
import { insertVersion } from '../../../src/db/pipeline.ts';
import { requestCancel } from '../../../src/db/run/run-control.ts';
import { deliverSoon } from '../../../src/parts/delivery/deliveries.ts';
import type { Idempotency } from '../../../src/use-cases/idempotency.ts';
import { storeDefinition } from '../../../src/use-cases/pipelines/pipelines.ts';
import { type RunToStart, runStarts, startNew } from '../../../src/use-cases/runs/delivery.ts';
import { writeRun, writeRuns } from '../../../src/use-cases/runs/submission.ts';
import { useDatabase } from '../../support/database.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { aProject } from '../../support/factories.ts';
import { aFleet, anIntakeCtx } from '../../support/intake.ts';

const { db } = useDatabase();
const short = { duration_ms: 10, success_count: 9, spec_digest: 'known' };
const fleet = { instances: [anInstance('only', short)], priorMs: 1 };
const intake = anIntakeCtx(db, { fleet: aFleet(fleet), mostOpen: 1_000 });

/** With the messages that would go to Temporal; null: it waits its turn, or was accepted before. */
async function submit(projectId: string, request: RunRequest, idempotency: Idempotency | null) {
  return writeRun(intake, { projectId, request, idempotency });
}

const definition: PipelineDefinition = {
  pipeline: 'stored',
  version: '1',
  steps: [{ id: 'a', capability: 'x', input: { n: '{{ job.n }}' } }],
};
const single: PipelineDefinition = {
  ...definition,
  pipeline: 'single',
  concurrency: { key: 'all', limit: 1, on_limit: 'queue' },
};
let project: string;
beforeAll(async () => {
  project = (await aProject(db)).project_id;
  for (const body of [definition, single]) {
    const key = { project_id: project, pipeline: body.pipeline, version: body.version };
    await insertVersion(db, key, { digest: await storeDefinition(db, body) });
  }
  await submit(project, { pipeline: 'stored', job: { n: 0 } }, null);
});

/** First words of the statements that it makes. */
async function statementsOf<Value>(work: () => Promise<Value>): Promise<[string[], Value]> {
  const made: string[] = [];
  const note = ({ sql }: { readonly sql: string }): void => void made.push(sql.trim().split(/\W/)[0] ?? '');
  db.on('query', note);
  try {
    return [made, await work()];
  } finally {
    db.off('query', note);
  }
}

/** Temporal with its messages, and with the events of a run while they are sent. */
async function startIn(start: RunToStart, meanwhile: () => Promise<unknown> = async () => undefined) {
  const told: [string, unknown][] = [];
  const ctx = aDeliveryCtx(db, {
    workflows: {
      start: async (input) => {
        await meanwhile();
        told.push(['start', input]);
      },
      cancel: async () => {
        told.push(['cancel', null]);
        return 'asked';
      },
      signalControl: async (_, control) => {
        told.push(['control', control]);
        return 'sent';
      },
      terminate: async () => {
        told.push(['terminate', null]);
        return 'ended';
      },
    },
  });
  const [statements] = await statementsOf(async () => {
    await startNew(ctx, start);
  });
  return { told, statements };
}

async function submitted(pipeline = 'stored') {
  const { run, start } = await submit(project, { pipeline, job: { n: 1 } }, null);
  if (start === null) throw new Error('it is not to be started');
  return { run, start };
}

test('a run of a stored pipeline is found and written by one statement each, and started without another', async () => {
  const [made, { run, start }] = await statementsOf(() => submitted());
  expect(made).toEqual(['select', 'with']);
  expect(await db('job').where({ job_id: run.job_id }).first('body')).toEqual({ body: { n: 1 } });
  const { told, statements } = await startIn(start);
  expect(statements).toEqual(['with']); // the mark
  expect(told).toEqual([['start', expect.objectContaining({ run_id: run.run_id, engine_version: 3 })]]);
});

test('five hundred runs in bulk are written by as many statements as two', async () => {
  const submitMany = async (count: number): Promise<string[]> => {
    const requests = Array.from({ length: count }, (_, n) => ({ pipeline: 'stored', job: { n } }));
    const order = { projectId: project, requests, idempotency: null, toProblem: () => expect.unreachable() };
    const [made, { answer }] = await statementsOf(() => writeRuns(intake, order));
    expect(answer.items.map(({ status }) => status)).toEqual(Array(count).fill(202));
    return made;
  };
  expect(await submitMany(500)).toEqual(await submitMany(2));
});

test('a start from the written row sends the same as one from the read row', async () => {
  const inputs: RunPipelineInput[] = [];
  const ctx = aDeliveryCtx(db, { workflows: { start: async (input) => void inputs.push(input) } });
  const { run, start } = await submitted();
  await deliverSoon(ctx, runStarts, { run_id: run.run_id });
  await startNew(ctx, start);
  expect(inputs).toHaveLength(2);
  expect(inputs[1]).toEqual(inputs[0]);
  expect(inputs[0]?.plan.steps).toMatchObject([{ id: 'a', inline: true }]);
});

test('a run keeps the decision of its submission; the next one has its own', async () => {
  const { run, start } = await submitted();
  const decided = { capability: 'x', how: 'inline', code: 'short', calls: 9, p90_ms: 10 };
  expect(run.dispatch).toEqual([expect.objectContaining(decided)]);
  fleet.instances = [anInstance('only', { ...short, duration_ms: 500 })];
  const { run: second, start: next } = await submitted();
  fleet.instances = [anInstance('only', short)];
  expect([run.steps[0]?.inline, second.steps[0]?.inline]).toEqual([true, undefined]);
  expect(
    await db('run').whereIn('run_id', [run.run_id, second.run_id]).orderBy('run_id').select('dispatch'),
  ).toEqual([
    { dispatch: [decided] },
    { dispatch: [{ ...decided, how: 'queued', code: 'slow', p90_ms: 500 }] },
  ]);
  expect([start.dispatch, next.dispatch.map(({ how }) => how)]).toEqual([[decided], ['queued']]);
});

test.each([
  ['cancelled', { mode: 'graceful' as const }, 'cancel'],
  ['terminated', { mode: 'terminate' as const }, 'terminate'],
])('a run that was %s before its workflow knew of it receives that then', async (_, { mode }, what) => {
  const { run, start } = await submitted();
  const key = { project_id: project, run_id: run.run_id };
  const { told } = await startIn(start, async () => {
    await requestCancel(db, key, { reason: null, mode });
    if (mode === 'terminate') await db('run').where(key).update({ finished_at: new Date() });
  });
  expect(told.map(([name]) => name)).toEqual(['start', what]);
  const { cancel_delivered_at } = await db('run').where(key).first();
  expect(cancel_delivered_at).toEqual(expect.any(Date));
});

test('a run that waits its turn is not started', async () => {
  const { start: first } = await submit(project, { pipeline: 'single', job: {} }, null);
  const { start: second } = await submit(project, { pipeline: 'single', job: {} }, null);
  expect([first?.pipeline, second]).toEqual(['single', null]);
});

test('a run and the answer that is kept for its key are written together or not at all', async () => {
  const idempotency = { key: randomUUID(), bodySha256: Buffer.alloc(32) };
  const request = { pipeline: 'stored', job: { n: 2 } };
  const [first, second] = [
    await submit(project, request, idempotency),
    await submit(project, request, idempotency),
  ];
  expect(first.start?.run_id).toBe(first.run.run_id);
  expect([second.run.run_id, second.replayed, second.start]).toEqual([first.run.run_id, true, null]);
});

test('a run takes the place of the oldest ones with its key, which are cancelled and name it', async () => {
  const place = (await aProject(db)).project_id;
  const body = {
    ...single,
    pipeline: 'latest',
    concurrency: { key: 'k', limit: 2, on_limit: 'cancel_oldest' },
  };
  const key = { project_id: place, pipeline: body.pipeline, version: body.version };
  await insertVersion(db, key, { digest: await storeDefinition(db, body as PipelineDefinition) });
  const request = { pipeline: 'latest', job: { n: 1 } };
  const standing = async (): Promise<unknown> =>
    (await db('run').where({ project_id: place }).orderBy('run_id').select('state', 'cancel_reason')).map(
      ({ state, cancel_reason }) => [state, cancel_reason],
    );
  const [first, second] = [await submit(place, request, null), await submit(place, request, null)];
  expect(await standing()).toEqual([
    ['queued', null],
    ['queued', null],
  ]);
  const third = await submit(place, request, null);
  expect([first.start, second.start, third.start].map((start) => start === null)).toEqual([
    false,
    false,
    true,
  ]);
  const byThird = ['cancelling', `replaced by ${third.run.run_id}`];
  expect(await standing()).toEqual([byThird, ['queued', null], ['queued', null]]);
  expect(
    await db('event').where({ run_id: first.run.run_id, type: 'run.cancelling' }).select('data'),
  ).toEqual([{ data: { reason: byThird[1], mode: 'graceful' } }]);
  const requests = Array.from({ length: 3 }, () => request);
  await writeRuns(intake, {
    projectId: place,
    requests,
    idempotency: null,
    toProblem: () => expect.unreachable(),
  });
  const [, , , fourth, fifth, sixth] = (await standing()) as string[][];
  expect([fourth, fifth, sixth].map((row) => row?.[0])).toEqual(['cancelling', 'queued', 'queued']);
});
