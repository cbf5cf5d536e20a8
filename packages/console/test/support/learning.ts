/** A project with the learning demonstration's pipeline. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Run } from '@capstan/core/contracts/run';
import type { SharedCapstan } from '../../../../test/support/shared-capstan.ts';

/** A project that has not seen the mistake, and its key. */
export interface Learner {
  readonly key: string;
  /** A job with the mistake, as it is written. */
  readonly job: string;
  readonly request: SharedCapstan['request'];
}

const folder = fileURLToPath(new URL('../../../../examples/learning', import.meta.url));

/** The job with the mistake, a gain as a text with its unit, about files of a job of the project. */
async function writeJob(request: SharedCapstan['request']): Promise<string> {
  const { body } = await request<{ job_id: string }>('POST', '/v1/jobs', { job: {} });
  const text = await readFile(join(folder, 'job.json'), 'utf8');
  for (const [, file] of text.matchAll(/media:\/\/job\/([\w./-]+)/g)) {
    const type = { 'content-type': 'application/octet-stream' };
    const { status } = await request('PUT', `/v1/media/${body.job_id}/${file}`, 'sound', type);
    if (status >= 300) throw new Error(`PUT of ${file}: ${status}`);
  }
  return text.replaceAll('media://job/', `media://${body.job_id}/`);
}

export async function openLearner({ request: ask }: SharedCapstan, name: string): Promise<Learner> {
  const { body: project } = await ask<{ project_id: string }>('POST', '/v1/projects', { name });
  const { body } = await ask<{ key: string }>('POST', '/v1/keys', {
    name,
    scopes: ['admin'],
    projects: [project.project_id],
  });
  const request: SharedCapstan['request'] = (method, path, sent, headers = {}) =>
    ask(method, path, sent, { ...headers, authorization: `Bearer ${body.key}` });
  const pipeline = await readFile(join(folder, 'pipeline.yaml'), 'utf8');
  const stored = await request('POST', '/v1/pipelines', pipeline, { 'content-type': 'application/yaml' });
  if (stored.status !== 201) throw new Error(`POST /v1/pipelines: ${stored.status}`);
  return { key: body.key, job: await writeJob(request), request };
}

/** The run when it has come to an end. */
export async function readRun({ request }: Learner, runId: string): Promise<Run> {
  return (await request<Run>('GET', `/v1/runs/${runId}`)).body;
}
