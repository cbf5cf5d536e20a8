/** The recorder of the history of a feature: Capstan on this machine, an obedient instance, a keeper of histories. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import type { StackFile } from '@capstan/core/contracts/stack';
import { ladderWorkflowId, runWorkflowId } from '@capstan/core/workflow-names';
import { engineVersion } from '@capstan/core/workflow-payloads';
import { Client, Connection } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { type Instance, startInstance } from '../../test/support/fleet.ts';
import { waitFor } from '../../test/support/wait.ts';
import { features } from './features.ts';

export interface Recording {
  readonly databaseUrl: string;
  readonly projectId: string;
  /** Offers `echo`; a recording that changes its answer restores it. */
  readonly instance: Instance;
  readonly request: <Body>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => Promise<{ readonly status: number; readonly headers: Headers; readonly body: Body }>;
  readonly submit: (steps: readonly object[], extra?: object) => Promise<Run>;
  readonly ended: (runId: string) => Promise<Run>;
  readonly awaiting: (runId: string, what: string) => Promise<unknown>;
  /** The question that the run waits for, also of one of its items. */
  readonly questionOf: (runId: string) => Promise<Review>;
  /** Keeps the history of a run that has ended, or will soon. */
  readonly keep: (name: string, runId: string) => Promise<void>;
  /** Keeps every history of a run that continued as new: `<name>`, `<name>-2`, … */
  readonly keepAll: (name: string, runId: string) => Promise<void>;
  readonly keepWorkflow: (name: string, workflowId: string) => Promise<void>;
  /** Resolves when the workflow of a run has received every message, and none of its work is running. */
  readonly rested: (run: Run) => Promise<unknown>;
  /** Keeps the history of a run and of the ladder of its step `first`. */
  readonly keepBoth: (name: string, run: Run) => Promise<void>;
}

export type FeatureRecorders = Readonly<Record<string, (recording: Recording) => Promise<void>>>;

/** Queued unless `extra` overrides it: by itself, a run would decide by the calls that were recorded before it. */
export function step(id: string, extra: object = {}) {
  return { id, capability: 'echo', dispatch: 'queued', input: {}, ...extra };
}

function pathOf(name: string): string {
  return fileURLToPath(new URL(`../../test/histories/${name}.v${engineVersion}.json`, import.meta.url));
}

export async function startRecording(stack: StackFile): Promise<Recording & { stop(): Promise<void> }> {
  const connection = await Connection.connect({ address: stack.temporal_address });
  const api = createApi(stack);
  const instance = await startInstance(api, { name: 'echo' });
  return {
    ...api,
    ...createKeeper(new Client({ connection }), api.ended),
    instance,
    databaseUrl: stack.database_url,
    projectId: stack.project_id,
    stop: async () => {
      await instance.stop();
      await connection.close();
    },
  };
}

type Api = Pick<Recording, 'request' | 'submit' | 'ended' | 'awaiting' | 'questionOf'>;

function createApi({ api_url, api_key }: StackFile): Api {
  const request = async <Body>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ) => {
    const authorization = `Bearer ${api_key}`;
    const response = await fetch(api_url + path, {
      method,
      headers: { authorization, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
  };
  const runOf = async (id: string): Promise<Run> => (await request<Run>('GET', `/v1/runs/${id}`)).body;
  return {
    request,
    submit: async (steps, extra = {}) => {
      const definition = { pipeline: 'test', version: '1', steps, ...extra };
      const { status, body } = await request<Run>('POST', '/v1/runs', { definition, job: {} });
      if (status !== 202) throw new Error(`POST /v1/runs: ${status} ${JSON.stringify(body)}`);
      return body;
    },
    ended: (id) =>
      waitFor(
        `run ${id} to end`,
        async () => {
          const run = await runOf(id);
          return run.finished_at === null ? undefined : run;
        },
        60_000,
      ),
    awaiting: (id, what) =>
      waitFor(`run ${id} to wait for ${what}`, async () =>
        (await runOf(id)).awaiting?.some((one) => one === what),
      ),
    questionOf: (id) =>
      waitFor('a question', async () => {
        const path = `/v1/reviews?run_id=${id}&state=open`;
        return (await request<{ items: Review[] }>('GET', path)).body.items[0];
      }),
  };
}

type Keeper = Pick<Recording, 'keep' | 'keepAll' | 'keepWorkflow' | 'keepBoth' | 'rested'>;

function createKeeper({ workflow }: Client, ended: Api['ended']): Keeper {
  const write = async (name: string, workflowId: string, runId?: string): Promise<void> => {
    if (features[name] === undefined) throw new Error(`${name} is no feature in features.ts`);
    const handle = workflow.getHandle(workflowId, runId);
    await waitFor('the workflow to close', async () => (await handle.describe()).status.name !== 'RUNNING');
    const history = JSON.parse(historyToJSON(await handle.fetchHistory()));
    // Stack traces name the folder that this checkout happens to be in.
    const text = JSON.stringify(history, null, 1).replaceAll(`${process.cwd()}/`, '');
    mkdirSync(dirname(pathOf(name)), { recursive: true });
    writeFileSync(pathOf(name), `${text}\n`, { flag: 'wx' });
    console.log(`recorded ${name}`);
  };
  const keep: Keeper['keep'] = async (name, runId) => {
    await write(name, runWorkflowId(await ended(runId)));
  };
  return {
    keep,
    rested: (run) =>
      waitFor('the workflow to rest', async () => {
        const { raw } = await workflow.getHandle(runWorkflowId(run)).describe();
        return raw.pendingActivities?.length === 0 && !raw.pendingWorkflowTask;
      }),
    keepWorkflow: (name, workflowId) => write(name, workflowId),
    keepBoth: async (name, run) => {
      await keep(name, run.run_id);
      await write(`${name}-ladder`, ladderWorkflowId(run, { step_id: 'first', item: 0, round: 1 }));
    },
    keepAll: async (name, runId) => {
      const workflowId = runWorkflowId(await ended(runId));
      const found: string[] = [];
      const query = `WorkflowId = "${workflowId}"`;
      for await (const execution of workflow.list({ query })) found.unshift(execution.runId);
      for (const [at, id] of found.entries()) {
        await write(at === 0 ? name : `${name}-${at + 1}`, workflowId, id);
      }
    },
  };
}
