import type { RunEvent } from '@capstan/core/contracts/event';
import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import { runWorkflowId } from '@capstan/core/workflow-names';
import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openTemporal } from '../../src/clients/temporal/connection.ts';
import { finishRun, insertRuns, openRun } from '../../src/db/run/run.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { aClaim, anInstance, claimAttempt } from '../support/factories.ts';
import { waitFor } from '../support/wait.ts';
import { isWoken, waitForBudget } from '../support/waiting.ts';

let api: TestApi;
let temporal: Client;
beforeAll(async () => {
  api = await startTestApi({ MAINTENANCE_MS: 250 });
  temporal = openTemporal();
  await anInstance(api.db, { name: 'x' });
  await api.call('/v1/pipelines', { body: definition });
});
afterAll(async () => {
  await temporal.connection.close();
  await api.close();
});

const definition = {
  pipeline: 'stored',
  version: '1',
  steps: [
    { id: 'a', capability: 'x' },
    { id: 'b', capability: 'x', depends_on: ['a'] },
  ],
};

async function submitted(body: object = {}): Promise<Run> {
  const [, run] = await readJson<Run>(api.call('/v1/runs', { body: { pipeline: 'stored', ...body } }));
  return run;
}
function post<Body = Run>(run: Pick<Run, 'run_id'>, action: string, body?: object) {
  return readJson<Body>(
    api.call(`/v1/runs/${run.run_id}/${action}`, { method: 'POST', ...(body === undefined ? {} : { body }) }),
  );
}
async function read({ run_id }: Pick<Run, 'run_id'>): Promise<Run> {
  return (await readJson<Run>(api.call(`/v1/runs/${run_id}`)))[1];
}

/** A worker has taken its first step. */
function begin(run: Run) {
  return openRun(api.db, run.run_id);
}
function end(run: Run, state: 'succeeded' | 'cancelled' = 'succeeded') {
  return finishRun(api.db, { run_id: run.run_id, state, output: null, error: null, step_ids: [] });
}

async function eventsOf({ run_id }: Run): Promise<string[]> {
  const rows: RunEvent[] = await api.db('event').where({ run_id }).orderBy(['xid', 'id']).select('*');
  return rows.map(({ type }) => type);
}

function handleOf(run: Pick<Run, 'run_id' | 'pipeline'>) {
  return temporal.workflow.getHandle(runWorkflowId(run));
}

/** The messages to Temporal, each once: names and contents of signals, and whether a cancel was asked for. */
async function toldOf(run: Run): Promise<unknown[]> {
  const { events = [] } = await handleOf(run).fetchHistory();
  const told = (events ?? []).flatMap((event): unknown[] => {
    const signal = event.workflowExecutionSignaledEventAttributes;
    if (signal) {
      const [payload] = signal.input?.payloads ?? [];
      return [[signal.signalName, JSON.parse(Buffer.from(payload?.data ?? []).toString())]];
    }
    return event.workflowExecutionCancelRequestedEventAttributes ? ['cancel'] : [];
  });
  return [...new Map(told.map((one) => [JSON.stringify(one), one])).values()];
}
function delivered(run: Run) {
  return waitFor('the start', async () => {
    const row = await api.db('run').where({ run_id: run.run_id }).first('start_delivered_at');
    return row?.start_delivered_at != null;
  });
}

describe('pause and resume', () => {
  test('are signalled to the run, once each however often they are requested', async () => {
    const run = await submitted();
    await delivered(run);
    for (const action of ['pause', 'pause']) {
      expect(await post(run, action)).toEqual([202, expect.objectContaining({ state: 'paused' })]);
    }
    await waitFor('the pause', async () => (await toldOf(run)).length === 1);
    for (const action of ['resume', 'resume']) {
      expect(await post(run, action)).toEqual([202, expect.objectContaining({ state: 'queued' })]);
    }
    const control = { paused: false, budget_version: 0 };
    await waitFor('the resume', async () => (await toldOf(run)).length === 2);
    expect(await toldOf(run)).toEqual([
      ['control', { ...control, version: 1, paused: true }],
      ['control', { ...control, version: 2, paused_ms: expect.any(Number) }],
    ]);
    expect(await eventsOf(run)).toEqual(['run.queued', 'run.paused', 'run.resumed']);
  });

  test('a pause lists the calls that still finish, and counts the steps that wait for the resume', async () => {
    const definition = {
      pipeline: 'open',
      version: '1',
      steps: [
        { id: 'a', capability: 'x' },
        { id: 'items', capability: 'x', for_each: { items: [1, 2, 3] } },
        { id: 'b', capability: 'x', depends_on: ['a'] },
        { id: 'w', wait: '1h' },
      ],
    };
    const [, run] = await readJson<Run>(api.call('/v1/runs', { body: { definition, job: {} } }));
    await begin(run);
    expect(await read(run)).not.toHaveProperty('pause');
    const { project_id } = await api.db('run').where({ run_id: run.run_id }).first('project_id');
    const endpoints: string[] = [];
    for (const [step_id, item] of [
      ['a', 0],
      ['items', 2],
    ] as const) {
      const key = `${run.run_id}.${step_id}.${item}.0`;
      const step = { run_id: run.run_id, step_id, item, revision: 0 };
      const instance = await anInstance(api.db, { name: 'x' });
      endpoints.push(instance.endpoint);
      await claimAttempt(api.db, aClaim({ ...run, project_id }, instance, { capability: 'x', key, step }));
    }
    const [status, paused] = await post(run, 'pause');
    const call = { capability: 'x', started_at: expect.any(String) };
    expect([status, paused.pause]).toEqual([
      202,
      {
        since: expect.any(String),
        by: { id: expect.stringMatching(/^key_/), name: expect.any(String) },
        open_calls: [
          { ...call, step_id: 'a', endpoint: endpoints[0] },
          { ...call, step_id: 'items', item: 2, endpoint: endpoints[1] },
        ],
        open_call_count: 2,
        open_child_runs: [],
        held_steps: 2,
      },
    ]);
    expect((await read(run)).pause).toEqual(paused.pause);
    const [, resumed] = await post(run, 'resume');
    expect(resumed).not.toHaveProperty('pause');
  });

  test('a run that had begun runs on', async () => {
    const run = await submitted();
    await begin(run);
    await post(run, 'pause');
    await begin(run); // by a worker that does not know it yet
    expect((await read(run)).state).toBe('paused');
    expect(await post(run, 'resume')).toEqual([202, expect.objectContaining({ state: 'running' })]);
    const other = await submitted();
    await post(other, 'pause');
    await begin(other); // for the first time
    expect((await read(other)).state).toBe('paused');
    expect(await post(other, 'resume')).toEqual([202, expect.objectContaining({ state: 'running' })]);
  });

  test.each(['pause', 'resume'])('%s of a run that is over is refused with what it is', async (action) => {
    const run = await submitted();
    await end(run);
    expect(await post(run, action)).toEqual([
      409,
      expect.objectContaining({ code: 'state_conflict', detail: expect.stringContaining('is succeeded') }),
    ]);
    const cancelling = await submitted();
    await delivered(cancelling);
    await post(cancelling, 'cancel');
    expect((await post(cancelling, action))[0]).toBe(409);
  });

  test.each(['pause', 'resume', 'cancel', 'rerun'])(
    '%s of no run, or of another project’s, is 404',
    async (action) => {
      const { apiKey } = await api.createProject('other');
      const run = await submitted();
      const headers = { authorization: `Bearer ${apiKey}` };
      const foreign = await api.call(`/v1/runs/${run.run_id}/${action}`, { method: 'POST', headers });
      expect([foreign.status, (await post({ run_id: 'run_none' }, action))[0]]).toEqual([404, 404]);
    },
  );
});

describe('cancel', () => {
  test('asks the workflow; with terminate the run ends immediately, with its child runs', async () => {
    const run = await submitted();
    await delivered(run);
    const child = { ...run, run_id: `${run.run_id}-child` };
    const row = await api.db('run').where({ run_id: run.run_id }).first('digest');
    await insertRuns(api.db, {
      runs: [
        {
          run_id: child.run_id,
          project_id: api.projectId,
          job_id: run.job_id,
          pipeline: 'stored',
          version: '1',
          digest: row?.digest ?? '',
          priority: 'standard',
          budget_ceiling_usd: null,
          labels: {},
          parent_run_id: run.run_id,
          parent_step_id: 'a',
          parent_item: 0,
          parent_revision: 0,
          depth: 1,
          parent_workflow_id: runWorkflowId(run),
        },
      ],
    });
    await delivered(child); // only maintenance does it
    expect(await read(child)).toMatchObject({ parent: { run_id: run.run_id, step_id: 'a', item: 0 } });

    expect((await post(run, 'cancel', { reason: 'enough' }))[1].state).toBe('cancelling');
    await waitFor('the cancel', async () => (await toldOf(run)).includes('cancel'));
    await post(run, 'cancel', { mode: 'terminate' });
    const ended = await waitFor('the end', async () => {
      const now = await read(run);
      return now.finished_at === null ? null : now;
    });
    expect(ended).toMatchObject({ state: 'cancelled', error: { code: 'run_cancelled' } });
    expect(ended.steps.map(({ state }) => state)).toEqual(['cancelled', 'cancelled']);
    expect((await handleOf(run).describe()).status.name).toBe('TERMINATED');
    await waitFor('the end of the child', async () => (await read(child)).state === 'cancelled');
    expect((await handleOf(child).describe()).status.name).toBe('TERMINATED');
    expect((await post(run, 'cancel', { mode: 'terminate' }))[0]).toBe(202);
  });
});

describe('the ceiling of a run', () => {
  const inputFor = (run: Run) => ({ run_id: run.run_id, project_id: api.projectId });

  test('that is raised wakes the steps that wait for it, and answers the question', async () => {
    const run = await submitted({ budget_ceiling_usd: 0.5 });
    await delivered(run);
    const review_id = await waitForBudget(api.db, inputFor(run), {
      step_id: 'a',
      scope: `run:${run.run_id}`,
      limit_usd: 0.5,
    });
    expect(await read(run)).toMatchObject({
      awaiting: ['budget'],
      steps: [{ state: 'waiting', review_id }, {}],
    });
    expect(await post(run, 'budget', { budget_ceiling_usd: 2 })).toEqual([
      200,
      expect.objectContaining({ budget_ceiling_usd: 2 }),
    ]);
    await waitFor('the wake', async () => (await toldOf(run)).length === 2);
    expect(await toldOf(run)).toEqual(
      expect.arrayContaining([
        ['control', { version: 1, paused: false, budget_version: 1 }],
        ['woken', { step_id: 'a', item: 0 }],
      ]),
    );
    await waitFor('the wake to be forgotten', async () => !(await isWoken(api.db, run.run_id, 'a')));
    const [, review] = await readJson<Review>(api.call(`/v1/reviews/${review_id}`));
    expect(review).toMatchObject({ state: 'resolved', decision: { action: 'raise', budget_ceiling_usd: 2 } });
    const budget = await api
      .db('budget')
      .where({ scope: `run:${run.run_id}` })
      .first('limit_nano');
    expect(budget?.limit_nano).toBe('2000000000');
    const raised = await api
      .db('event')
      .where({ run_id: run.run_id, type: 'run.budget_raised' })
      .first('data');
    expect(raised?.data).toEqual({ from: 0.5, to: 2 });
  });

  test('may be taken away, and not changed when the run is over', async () => {
    const run = await submitted({ budget_ceiling_usd: 0.5 });
    expect((await post(run, 'budget', { budget_ceiling_usd: null }))[1].budget_ceiling_usd).toBeNull();
    await end(run);
    expect(await post(run, 'budget', { budget_ceiling_usd: 3 })).toEqual([
      409,
      expect.objectContaining({ code: 'state_conflict' }),
    ]);
    expect((await post(run, 'budget', { budget_ceiling_usd: -1 }))[0]).toBe(422);
  });
});
