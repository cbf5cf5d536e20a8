import { Job, JobCreated, JobRequest } from '../../contracts/media.ts';
import type { Services } from '../../services/services.ts';
import { json } from '../body-kind.ts';
import { type Route, route } from '../route.ts';
import { JobPath } from './parameters.ts';

export function jobRoutes({ jobs }: Pick<Services, 'jobs'>): Route[] {
  return [
    route({
      operation: 'create_job',
      method: 'POST',
      path: '/v1/jobs',
      tag: 'jobs',
      summary: 'Store an input, and open the media namespace media://<job_id>/ for its files',
      auth: 'key',
      scope: 'run:write',
      body: json(JobRequest, 'data'),
      responses: { 201: JobCreated },
      errors: ['media_unknown'],
      handle: async ({ caller, body }) => {
        const created = await jobs.create(caller.project_id, body.job);
        return { status: 201, headers: { Location: `/v1/jobs/${created.job_id}` }, body: created };
      },
    }),
    route({
      operation: 'get_job',
      method: 'GET',
      path: '/v1/jobs/{id}',
      tag: 'jobs',
      summary: 'Show a job with its runs and files',
      auth: 'key',
      scope: 'run:read',
      params: JobPath,
      responses: { 200: Job },
      handle: async ({ caller, params }) => ({
        status: 200,
        body: await jobs.get(caller.project_id, params.id),
      }),
    }),
  ];
}
