import { aloneWorkflowId, runWorkflowId } from '@capstan/core/workflow-names';
import type { EscalateInput, RunPipelineInput } from '@capstan/core/workflow-payloads';
import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { openTemporal } from '../../src/clients/temporal/connection.ts';
import { createRunWorkflows, type RunWorkflows } from '../../src/clients/temporal/run-workflows.ts';
import { newId } from '../../src/parts/ids.ts';
import { waitFor } from '../support/wait.ts';

let client: Client;
let workflows: RunWorkflows;
beforeAll(async () => {
  process.env.TEMPORAL_ADDRESS = inject('temporalAddress');
  client = openTemporal();
  workflows = createRunWorkflows(client, 'nobody-works-here');
});
afterAll(() => client.connection.close());

/** Ids that the visibility store lists, once this one is among them: it lags behind. */
async function listedWith(id: string, list: () => AsyncIterable<string>): Promise<readonly string[]> {
  return waitFor(`${id} to be listed`, async () => {
    const ids: string[] = [];
    for await (const one of list()) ids.push(one);
    return ids.includes(id) ? ids : null;
  });
}

function aStart(): EscalateInput {
  return {
    engine_version: 2,
    escalation_id: newId('escalation'),
    waits_for_reviews: true,
    from: { transition: 0, command: { type: 'execute', level: 0 } },
    heartbeat_timeout_ms: 30_000,
    url: 'http://capstan.test',
  };
}

it('starts one ladder of its own once, and signals its review to it under that id', async () => {
  const input = aStart();
  const { escalation_id } = input;
  const waiting = { escalation_id };
  const review = { review_id: 'rev_1', version: 2 };
  expect(await workflows.signalReviewed(waiting, review)).toBe('gone');
  const owner = { project_id: 'prj_1', job_type: 'title' };
  await Promise.all([workflows.startEscalation(owner, input), workflows.startEscalation(owner, input)]);
  expect(await workflows.signalReviewed(waiting, review)).toBe('sent');
  const handle = client.workflow.getHandle(aloneWorkflowId(escalation_id));
  expect(await workflows.isForgotten(waiting)).toBe(false);
  expect(await workflows.isForgotten({ escalation_id: newId('escalation') })).toBe(true);
  const query = `ProjectId = 'prj_1' AND WorkflowId = '${aloneWorkflowId(escalation_id)}'`;
  await waitFor('it to be found by its project', async () => (await client.workflow.count(query)).count > 0);
  expect(await (await handle.describe()).staticSummary()).toBe('escalation of title');
  await listedWith(escalation_id, () => workflows.listRunningLadders());
  const { events } = await handle.fetchHistory();
  const signals = (events ?? []).flatMap(
    ({ workflowExecutionSignaledEventAttributes: signal }) => signal?.signalName ?? [],
  );
  expect(signals).toEqual(['reviewed']);
  await handle.terminate();
  expect(await workflows.signalReviewed(waiting, review)).toBe('gone');
  await workflows.startEscalation(owner, input);
  expect((await handle.describe()).status.name).toBe('TERMINATED');
});

it('finds no run that has not begun', async () => {
  const waiting = { pipeline: 'p', run_id: newId('run') };
  expect(await workflows.signalReviewed(waiting, { review_id: 'rev_1', version: 2 })).toBe('gone');
});

describe('the workflow of a run', () => {
  const control = { version: 3, paused: true, budget_version: 0 };
  const aRunStart = (): RunPipelineInput => ({
    engine_version: 3,
    run_id: newId('run'),
    project_id: 'prj_1',
    pipeline: 'p',
    version: '1',
    plan: { steps: [], max_in_flight: 1 },
    timeout_ms: null,
    heartbeat_timeout_ms: 30_000,
    has_search_attributes: false,
    run_url: '',
    dispatch_reasons: [],
  });

  it('learns what people asked of it before it begins, and later', async () => {
    const input = aRunStart();
    expect(await workflows.signalControl(input, control)).toBe('gone');
    await workflows.start(input, 'standard', control);
    expect(await workflows.signalControl(input, { ...control, version: 4 })).toBe('sent');
    const id = runWorkflowId(input);
    expect(id).toBe(`p/${input.run_id}`);
    expect(await workflows.signalWoken(id, { step_id: 'a', item: 2 })).toBe('sent');
    const { events } = await client.workflow.getHandle(id).fetchHistory();
    const signals = (events ?? []).flatMap(
      ({ workflowExecutionSignaledEventAttributes: signal }) => signal?.signalName ?? [],
    );
    expect(signals).toEqual(['control', 'control', 'woken']);
    expect(await workflows.isOpen(input)).toBe(true);
    expect(await workflows.terminate(input, 'test')).toBe('ended');
    expect(await workflows.terminate(input, 'test')).toBe('gone');
    await workflows.start(input, 'standard', control);
    expect(await workflows.isOpen(input)).toBe(false);
  });

  it('is listed once it was ended from outside, with others of its task queue and no ladder', async () => {
    const since = new Date(Date.now() - 1_000);
    const [ended, open] = [aRunStart(), aRunStart()];
    for (const input of [ended, open]) await workflows.start(input, 'standard', null);
    const elsewhere = createRunWorkflows(client, 'nobody-works-there');
    const other = aRunStart();
    await elsewhere.start(other, 'standard', null);
    for (const input of [ended, other]) await workflows.terminate(input, 'test');
    const listed = await listedWith(ended.run_id, () => workflows.listClosed(since));
    expect([listed.includes(open.run_id), listed.includes(other.run_id)]).toEqual([false, false]);
    const later: string[] = [];
    for await (const id of workflows.listClosed(new Date(Date.now() + 60_000))) later.push(id);
    expect(later).toEqual([]);
    const running = await listedWith(open.run_id, () => workflows.listRunning());
    expect(running).not.toContain(ended.run_id);
    const known = await Promise.all([open, ended, aRunStart()].map((run) => workflows.isForgotten(run)));
    expect(known).toEqual([false, false, true]);
    await workflows.terminate(open, 'test');
  });
});
