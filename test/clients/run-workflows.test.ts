import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { connectTemporal } from '../../src/clients/temporal/connect.ts';
import { createRunWorkflows, type RunWorkflows } from '../../src/clients/temporal/run-workflows.ts';
import type { EscalateInput } from '../../src/core/run/escalate-input.ts';
import { newId } from '../../src/services/ids.ts';

let client: Client;
let workflows: RunWorkflows;
beforeAll(async () => {
  process.env.TEMPORAL_ADDRESS = inject('temporalAddress');
  client = await connectTemporal();
  workflows = createRunWorkflows(client, 'nobody-works-here');
});
afterAll(() => client.connection.close());

const aStart = (): EscalateInput => ({
  ...{ engine_version: 2, escalation_id: newId('escalation'), waits_for_reviews: true },
  from: { transition: 0, command: { type: 'execute', level: 0 } },
  ...{ heartbeat_timeout_ms: 30_000, url: 'http://capstan.test' },
});

it('starts a ladder by itself once, and tells it of its review under that id', async () => {
  const input = aStart();
  const { escalation_id } = input;
  const waiting = { project_id: 'prj_1', escalation_id };
  const review = { review_id: 'rev_1', version: 2 };
  expect(await workflows.signalReviewed(waiting, review)).toBe('gone');
  await Promise.all([workflows.startEscalation('prj_1', input), workflows.startEscalation('prj_1', input)]);
  expect(await workflows.signalReviewed(waiting, review)).toBe('sent');
  const handle = client.workflow.getHandle(`esc/prj_1/${escalation_id}`);
  const { events } = await handle.fetchHistory();
  const signals = (events ?? []).flatMap(
    ({ workflowExecutionSignaledEventAttributes: signal }) => signal?.signalName ?? [],
  );
  expect(signals).toEqual(['reviewed']);
  await handle.terminate();
  expect(await workflows.signalReviewed(waiting, review)).toBe('gone');
  await workflows.startEscalation('prj_1', input);
  expect((await handle.describe()).status.name).toBe('TERMINATED');
});

it('finds no run that has not begun', async () => {
  const waiting = { project_id: 'prj_1', run_id: newId('run') };
  expect(await workflows.signalReviewed(waiting, { review_id: 'rev_1', version: 2 })).toBe('gone');
});
