/** Keeps histories of workflows that have ended under test/histories; one that is there already stays. */
import { existsSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { inject } from 'vitest';
import { workflowIdOf } from '../../src/clients/temporal/run-workflows.ts';
import { engineVersion } from '../../src/core/workflow-payloads/engine-version.ts';
import type { Capstan } from './capstan.ts';
import { waitFor } from './wait.ts';

export interface HistoryRecorder {
  /** Of a run; of one that moved on, its last history. */
  keep(name: string, runId: string): Promise<void>;
  /** Every history of a run that moved on: `<name>`, `<name>-2`, … */
  keepAll(name: string, runId: string): Promise<void>;
  keepWorkflow(name: string, workflowId: string): Promise<void>;
  close(): Promise<void>;
}

function pathOf(name: string): string {
  return fileURLToPath(new URL(`../histories/${name}.v${engineVersion}.json`, import.meta.url));
}

export async function startHistoryRecorder(capstan: Capstan): Promise<HistoryRecorder> {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  const { workflow } = new Client({ connection });
  const { body } = await capstan.request<{ items: { project_id: string }[] }>('GET', '/v1/projects');
  const idOf = (runId: string): string => workflowIdOf(body.items[0]?.project_id ?? '', runId);

  const keepWorkflow = async (name: string, workflowId: string, runId?: string): Promise<void> => {
    const handle = workflow.getHandle(workflowId, runId);
    await waitFor('the workflow to close', async () => (await handle.describe()).status.name !== 'RUNNING');
    if (existsSync(pathOf(name))) return;
    const history = JSON.parse(historyToJSON(await handle.fetchHistory()));
    // Stack traces name the folder that this checkout happens to be in.
    const text = JSON.stringify(history, null, 1).replaceAll(`${process.cwd()}/`, '');
    writeFileSync(pathOf(name), `${text}\n`);
  };

  return {
    keepWorkflow: (name, workflowId) => keepWorkflow(name, workflowId),
    keep: async (name, runId) => {
      await capstan.ended(runId);
      await keepWorkflow(name, idOf(runId));
    },
    keepAll: async (name, runId) => {
      await capstan.ended(runId);
      const query = `WorkflowId = "${idOf(runId)}"`;
      const found: string[] = [];
      for await (const execution of workflow.list({ query })) found.unshift(execution.runId);
      for (const [at, id] of found.entries()) {
        await keepWorkflow(at === 0 ? name : `${name}-${at + 1}`, idOf(runId), id);
      }
    },
    close: () => connection.close(),
  };
}
