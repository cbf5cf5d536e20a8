/** Runs every feature on the real server and keeps its history. Only when asked: `npm run histories`. */
import { existsSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { afterAll, beforeAll, describe, inject, test } from 'vitest';
import { workflowIdOf } from '../../src/clients/temporal/run-workflows.ts';
import type { Run } from '../../src/contracts/run.ts';
import { engineVersion } from '../../src/core/run/workflow-input.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { answer, echo, type Instance, startInstance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let capstan: Capstan;
let instance: Instance;
let connection: Connection;

const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../histories/${name}.v${engineVersion}.json`, import.meta.url));

const keep = async (name: string, runId: string): Promise<void> => {
  await capstan.ended(runId);
  const { body } = await capstan.request<{ items: { project_id: string }[] }>('GET', '/v1/projects');
  const projectId = body.items[0]?.project_id ?? '';
  const handle = new Client({ connection }).workflow.getHandle(workflowIdOf(projectId, runId));
  await waitFor('the workflow to close', async () => (await handle.describe()).status.name !== 'RUNNING');
  if (existsSync(pathOf(name))) return;
  const history = JSON.parse(historyToJSON(await handle.fetchHistory()));
  // Stack traces name the folder that this checkout happens to be in.
  const text = JSON.stringify(history, null, 1).replaceAll(`${process.cwd()}/`, '');
  writeFileSync(pathOf(name), `${text}\n`);
};

const step = (id: string, extra: object = {}) => ({ id, capability: 'echo', input: {}, ...extra });

describe.runIf(process.env.RECORD_HISTORIES)('histories', () => {
  beforeAll(async () => {
    connection = await Connection.connect({ address: inject('temporalAddress') });
    capstan = await startCapstan();
    instance = await startInstance(capstan, { name: 'echo' });
  });
  afterAll(async () => {
    await instance?.stop();
    await capstan?.stop();
    await connection?.close();
  });

  const submit = async (steps: object[], extra: object = {}): Promise<Run> =>
    capstan.submit(steps, {}, extra);

  test('chain', async () => {
    const run = await submit([step('first'), step('second', { input: { a: '{{ steps.first.output }}' } })]);
    await keep('chain', run.run_id);
  });

  test('parallel', async () => {
    const middle = ['a', 'b', 'c', 'd'].map((id) => step(id, { depends_on: ['first'] }));
    const run = await submit([step('first'), ...middle, step('last', { depends_on: ['a', 'b', 'c', 'd'] })]);
    await keep('parallel', run.run_id);
  });

  test('failed', async () => {
    instance.handle = (_exec, response) => answer(response, 422, { ok: false, error: 'no' });
    const run = await submit([step('first'), step('second', { depends_on: ['first'] })]);
    await keep('failed', run.run_id);
    instance.handle = echo;
  });

  test('retried', async () => {
    let calls = 0;
    instance.handle = (exec, response) => {
      calls += 1;
      answer(response, calls < 2 ? 500 : 200, exec.input);
    };
    const run = await submit([step('first', { retry: { initial: '10ms' } })]);
    await keep('retried', run.run_id);
    instance.handle = echo;
  });

  test('cancelled', async () => {
    const before = instance.execs.length;
    instance.handle = () => undefined;
    const run = await submit([step('first'), step('second', { depends_on: ['first'] })]);
    await waitFor('the call to arrive', () => instance.execs.length > before);
    await capstan.request('POST', `/v1/runs/${run.run_id}/cancel`, {});
    await keep('cancelled', run.run_id);
    instance.handle = echo;
  });

  test('run-timeout', async () => {
    instance.handle = () => undefined;
    const run = await submit([step('first')], { timeout: '500ms' });
    await keep('run-timeout', run.run_id);
    instance.handle = echo;
  });

  test('timer-unused', async () => {
    const run = await submit([step('first')], { timeout: '60s' });
    await keep('timer-unused', run.run_id);
  });

  test('step-timeout', async () => {
    const run = await submit([{ ...step('first'), capability: 'absent', total_timeout: '1s' }]);
    await keep('step-timeout', run.run_id);
  });

  test('unknown-delivery', async () => {
    instance.handle = () => undefined;
    const run = await submit([step('first', { timeout: '200ms', retry: { max: 0 } })]);
    await keep('unknown-delivery', run.run_id);
    instance.handle = echo;
  });
});
