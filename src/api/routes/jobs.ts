/**
 * Jobs, and announced uploads of their files. The answer to an announcement holds the address to upload to: a bucket,
 * if clients can reach one, else the API. The address grants access, so no key is sent with the upload.
 */

import {
  formatMediaReference,
  Job,
  JobCreated,
  JobRequest,
  MediaObject,
  UploadRequest,
  UploadTicket,
} from '@capstan/core/contracts/media';
import { z } from 'zod';
import { createJob, showJob } from '../../use-cases/jobs/jobs.ts';
import { byteStream, json } from '../input.ts';
import { IdPath, MediaFilePath } from '../parameters.ts';
import { type Route, route } from '../route.ts';
import { locateFile, mediaPrefix, showMedia } from './media.ts';

const suffix = '/upload';
const UploadPath = z.object({ token: z.string().regex(/^[A-Za-z0-9_-]{43}$/) });

export const jobRoutes: readonly Route[] = [
  route('POST /v1/jobs', {
    operation: 'create_job',
    tag: 'jobs',
    summary: 'Store an input, and open the media namespace media://<job_id>/ for its files',
    scope: 'run:write',
    body: json(JobRequest, 'data'),
    responses: { 201: JobCreated },
    errors: ['media_unknown'],
    handle: async (ctx, { caller, body }) => {
      const created = await createJob(ctx, caller.project_id, body.job);
      return { status: 201, headers: { Location: `/v1/jobs/${created.job_id}` }, body: created };
    },
  }),
  route('GET /v1/jobs/{id}', {
    operation: 'get_job',
    tag: 'jobs',
    summary: 'Show a job with its runs and files',
    scope: 'run:read',
    params: IdPath,
    responses: { 200: Job },
    result: (ctx, { caller, params }) => showJob(ctx, caller.project_id, params.id),
  }),
];

export const uploadRoutes: readonly Route[] = [
  route(`POST ${mediaPrefix}{job_id}/{+file}${suffix}`, {
    operation: 'announce_upload',
    tag: 'media',
    summary: 'Announce a file; the answer holds the address to upload it to',
    description:
      'The answer holds `url` and `headers` for one PUT, or `parts`, one PUT each. After the last part, POST to `complete_url`. Send no key with these requests. A URL without a host is a path of this API; its PUT answers with the file.',
    scope: 'media:write',
    params: MediaFilePath,
    body: json(UploadRequest),
    responses: { 201: UploadTicket },
    errors: ['body_too_large', 'media_quota', 'unavailable'],
    handle: async (ctx, { caller, path, body }) => {
      const target = await locateFile(ctx, caller, path.slice(0, -suffix.length));
      return { status: 201, body: await ctx.directMedia.announce(caller.project_id, target, body) };
    },
  }),
  route('PUT /v1/uploads/{token}', {
    operation: 'upload_bytes',
    tag: 'media',
    summary: 'Upload an announced file',
    scope: null,
    params: UploadPath,
    body: byteStream,
    responses: { 201: MediaObject },
    errors: ['body_too_large', 'digest_mismatch', 'media_quota', 'state_conflict', 'unavailable'],
    handle: async (ctx, { params, body }) => {
      const { path, object } = await ctx.directMedia.receive(params.token, body.stream);
      return { status: 201, body: showMedia(formatMediaReference(path), object) };
    },
  }),
  route('POST /v1/uploads/{token}', {
    operation: 'complete_upload',
    tag: 'media',
    summary: 'Complete an upload: join its parts into one file and check its digest',
    scope: null,
    isLong: true,
    params: UploadPath,
    responses: { 200: MediaObject },
    errors: ['upload_incomplete', 'digest_mismatch', 'unavailable'],
    handle: async (ctx, { params }) => {
      const { path, object } = await ctx.directMedia.complete(params.token);
      return { status: 200, body: showMedia(formatMediaReference(path), object) };
    },
  }),
];
