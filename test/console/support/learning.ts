/** The learning demonstration's pipeline over instances that take what its capabilities take. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Run } from '../../../src/contracts/run.ts';
import type { Capstan } from '../../support/capstan.ts';
import { type Instance, startInstance } from '../../support/fleet.ts';

/** A project that has not seen the mistake, and its key. */
export interface Learner {
  readonly key: string;
  /** A job with the mistake, as it is written. */
  readonly job: string;
  readonly request: Capstan['request'];
}

export interface School {
  readonly openProject: (name: string) => Promise<Learner>;
  readonly close: () => Promise<void>;
}

const folder = fileURLToPath(new URL('../../../examples/learning', import.meta.url));

/** What `audio-mix` takes. */
const file = {
  type: 'object',
  required: ['media_store_path'],
  properties: { media_store_path: { type: 'string' } },
};
const mixInput = {
  type: 'object',
  required: ['video', 'music', 'output_path'],
  properties: {
    video: file,
    music: file,
    output_path: { type: 'string' },
    music_gain_db: { type: 'number', minimum: -60, maximum: 20, default: -12 },
  },
};

/** The job with the mistake, a gain as a text with its unit, about files of a job of the project. */
async function writeJob(request: Capstan['request']): Promise<string> {
  const { body } = await request<{ job_id: string }>('POST', '/v1/jobs', { job: {} });
  const text = await readFile(join(folder, 'job.json'), 'utf8');
  return text.replaceAll('media://job/', `media://${body.job_id}/`);
}

export async function openSchool(capstan: Capstan): Promise<School> {
  const instances: Instance[] = await Promise.all([
    startInstance(capstan, { name: 'concat' }),
    startInstance(capstan, { name: 'audio-mix', input: mixInput }),
    startInstance(capstan, { name: 'thumbnail' }),
  ]);
  const pipeline = await readFile(join(folder, 'pipeline.yaml'), 'utf8');
  return {
    openProject: async (name) => {
      const { body: project } = await capstan.request<{ project_id: string }>('POST', '/v1/projects', {
        name,
      });
      const { body } = await capstan.request<{ key: string }>('POST', '/v1/keys', {
        name,
        scopes: ['admin'],
        projects: [project.project_id],
      });
      const request: Capstan['request'] = (method, path, sent, headers = {}) =>
        capstan.request(method, path, sent, { ...headers, authorization: `Bearer ${body.key}` });
      const stored = await request('POST', '/v1/pipelines', pipeline, { 'content-type': 'application/yaml' });
      if (stored.status !== 201) throw new Error(`POST /v1/pipelines: ${stored.status}`);
      return { key: body.key, job: await writeJob(request), request };
    },
    close: async () => {
      await Promise.all(instances.map((instance) => instance.stop()));
    },
  };
}

/** The run when it has come to an end. */
export async function readRun({ request }: Learner, runId: string): Promise<Run> {
  return (await request<Run>('GET', `/v1/runs/${runId}`)).body;
}
