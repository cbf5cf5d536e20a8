/** Projects, their erasure, their keys, and the audit log. */

import { Readable } from 'node:stream';
import { toAbortSignal } from '@capstan/core/cancellation';
import {
  AuditList,
  AuditQuery,
  Erasure,
  KeyCreated,
  KeyList,
  KeyRequest,
  KeyRevoked,
  Project,
  ProjectList,
  ProjectRequest,
  ProjectSettings,
  RotationRequest,
} from '@capstan/core/contracts/access';
import { ListQuery } from '@capstan/core/contracts/primitives';
import { z } from 'zod';
import { exportAudit, listAuditOf } from '../../use-cases/access/audit.ts';
import { createKey, listKeysOf, revokeKey, rotateKey } from '../../use-cases/access/keys.ts';
import { changeProject, createProject, listProjectsOf } from '../../use-cases/access/projects.ts';
import { beginErasure, showErasure } from '../../use-cases/erasure/erasure.ts';
import { ndjson } from '../answer.ts';
import { json } from '../input.ts';
import { IdPath } from '../parameters.ts';
import { type Route, route } from '../route.ts';

export const accessRoutes: readonly Route[] = [
  route('POST /v1/projects', {
    operation: 'create_project',
    tag: 'access',
    summary: 'Create a project; the calling key and its parent keys get access to it',
    scope: 'admin',
    body: json(ProjectRequest),
    responses: { 201: Project },
    result: (ctx, { caller, body }) => createProject(ctx, caller, body),
  }),
  route('GET /v1/projects', {
    operation: 'list_projects',
    tag: 'access',
    summary: 'List the projects of the calling key',
    scope: 'admin',
    query: ListQuery.strict(),
    responses: { 200: ProjectList },
    result: (ctx, { caller, query }) => listProjectsOf(ctx, caller, query),
  }),
  route('PUT /v1/projects/{id}/settings', {
    operation: 'set_project_settings',
    tag: 'access',
    summary:
      'Choose whether a project refuses requests that a model would not get whole, keeps contents of calls, and ends calls without room',
    description:
      'A field that is absent stays as it is. `strict` concerns the routes below `/openai` and `/anthropic`. Every process uses a change within 5 seconds; a run that has begun keeps its `on_budget`.',
    scope: 'admin',
    params: IdPath,
    body: json(ProjectSettings, 'small'),
    responses: { 200: Project },
    errors: ['not_found'],
    result: (ctx, { caller, params, body }) => changeProject(ctx, caller, { project_id: params.id, ...body }),
  }),
  route('DELETE /v1/projects/{id}', {
    operation: 'erase_project',
    tag: 'access',
    summary: 'Erase a project with its data; it accepts no new work from then on',
    description:
      'The server terminates open runs at once and erases the rest in the background. Ledger and audit log keep amounts and acts under a pseudonym. A repeated request answers the progress. You cannot erase the default project or the only project of the calling key.',
    scope: 'operator',
    params: IdPath,
    query: z.strictObject({}), // refuses parameters that are meant to soften the erasure
    responses: { 202: Erasure },
    result: (ctx, { caller, params }) => beginErasure(ctx, caller, params.id),
  }),
  route('GET /v1/projects/{id}/erasure', {
    operation: 'get_erasure',
    tag: 'access',
    summary: 'Show the progress of an erasure; before the erasure, show the data that it would delete',
    scope: 'operator',
    params: IdPath,
    responses: { 200: Erasure },
    result: (ctx, { params }) => showErasure(ctx, params.id),
  }),
  route('POST /v1/keys', {
    operation: 'create_key',
    tag: 'access',
    summary: 'Create a key; only this answer shows its secret',
    description:
      'A key cannot exceed the projects, scopes or expiry of the calling key, and is revoked with it. `capability:register:NAME` lets it register one capability, `capability:register:PREFIX*` all names with this prefix; `capability:call:NAME` and `capability:call:PREFIX*` limit calls in the same way.',
    scope: 'admin',
    body: json(KeyRequest),
    responses: { 201: KeyCreated },
    result: (ctx, { caller, body }) => createKey(ctx, caller, body),
  }),
  route('GET /v1/keys', {
    operation: 'list_keys',
    tag: 'access',
    summary: 'List the keys that share a project with the calling key, newest first',
    scope: 'admin',
    query: ListQuery.strict(),
    responses: { 200: KeyList },
    result: (ctx, { caller, query }) => listKeysOf(ctx, caller, query),
  }),
  route('DELETE /v1/keys/{id}', {
    operation: 'revoke_key',
    tag: 'access',
    summary: 'Revoke a key and all keys that it created, everywhere within 5 seconds',
    description:
      'You can revoke any key that shares a project with the calling key. Only an operator revokes a key with the scope `operator`. Webhooks, hooks and schedules of these keys continue; the answer names them.',
    scope: 'admin',
    params: IdPath,
    responses: { 200: KeyRevoked },
    result: (ctx, { caller, params }) => revokeKey(ctx, caller, params.id),
  }),
  route('POST /v1/keys/{id}/rotate', {
    operation: 'rotate_key',
    tag: 'access',
    summary: 'Replace the secret of a key; only this answer shows it',
    description:
      'You can rotate the calling key and the keys below it. Id, scopes, projects and expiry stay. The former secret works for another `overlap_s` seconds.',
    scope: 'admin',
    params: IdPath,
    body: json(RotationRequest),
    responses: { 200: KeyCreated },
    result: (ctx, { caller, params, body }) =>
      rotateKey(ctx, caller, { keyId: params.id, overlapS: body.overlap_s }),
  }),
];

export const auditRoutes: readonly Route[] = [
  route('GET /v1/audit', {
    operation: 'list_audit',
    tag: 'access',
    summary:
      'List administrative acts in the project, newest first; `subject` is the id of the changed object',
    description:
      'The answer is JSON pages by default. With `Accept: application/x-ndjson` it is one stream of all matching entries, oldest first, one per line. If the stream fails, the connection breaks.',
    scope: 'admin',
    opens: 'history',
    query: AuditQuery,
    headers: z.object({ accept: z.string().max(1_000).optional() }),
    responses: { 200: { content: ndjson, schema: AuditList } },
    handle: async (ctx, { caller, query, headers, signal }) => {
      if (headers.accept?.includes(ndjson) !== true)
        return { status: 200, body: await listAuditOf(ctx, caller, query) };
      return {
        status: 200,
        headers: { 'Content-Type': ndjson, 'Content-Disposition': 'attachment; filename="audit.ndjson"' },
        body: () =>
          Readable.from(exportAudit(ctx, caller, query), {
            objectMode: false,
            signal: toAbortSignal(signal),
          }),
      };
    },
  }),
];
