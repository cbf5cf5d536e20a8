/** A run whose payloads no key opens: it reports that, and can be cancelled. */

import type { Run } from '@capstan/core/contracts/run';
import { Client, Connection } from '@temporalio/client';
import { beforeAll, expect, inject, test } from 'vitest';
import { connectionOf } from '../../src/clients/temporal/connection.ts';
import { createPayloadCodec } from '../../src/clients/temporal/payload-codec.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;
beforeAll(async () => {
  capstan = await shareCapstan();
});

async function readRun(runId: string): Promise<Run> {
  return (await capstan.request<Run>('GET', `/v1/runs/${runId}`)).body;
}

/** As a process with another key would signal. */
async function signalEncrypted(workflowId: string): Promise<void> {
  const client = new Client({ connection: await Connection.connect({ address: inject('temporalAddress') }) });
  const codec = createPayloadCodec([{ id: 'k9', key: Buffer.alloc(32) }]);
  const plain = { metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from('{}') };
  await connectionOf(client).workflowService.signalWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId },
    signalName: 'woken',
    input: { payloads: await codec.encode([plain]) },
  });
  await client.connection.close();
}

test('without the key of its payloads a run names the one it needs, and can be cancelled', async () => {
  const { run_id, pipeline } = await capstan.submit([{ id: 'ask', review: { title: 'Well?' } }]);
  await waitFor('the question', async () => (await readRun(run_id)).awaiting?.includes('review'));
  await signalEncrypted(`${pipeline}/${run_id}`);
  const stalled = await waitFor('the reason', async () => (await readRun(run_id)).stalled);
  expect(stalled.message).toContain('encrypted by the key "k9" of PAYLOAD_KEYS; there is none');
  await capstan.request('POST', `/v1/runs/${run_id}/cancel`, {});
  const ended = await waitFor('its end', async () => {
    const run = await readRun(run_id);
    return run.finished_at === null ? undefined : run;
  });
  expect(ended).toMatchObject({ state: 'cancelled', error: { code: 'run_cancelled' } });
});
