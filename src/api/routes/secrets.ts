/** Secrets of a project. */

import { Secret, SecretList, SecretName, SecretRequest } from '@capstan/core/contracts/secret';
import { z } from 'zod';
import { deleteSecret, listSecretsOf, setSecret } from '../../use-cases/secrets/secrets.ts';
import { json } from '../input.ts';
import { type Route, route } from '../route.ts';

const SecretPath = z.object({ name: SecretName });

export const secretRoutes: readonly Route[] = [
  route('GET /v1/secrets', {
    operation: 'list_secrets',
    tag: 'secrets',
    summary: 'List the secrets of the project, without their values',
    scope: 'secrets:write',
    responses: { 200: SecretList },
    result: (ctx, { caller }) => listSecretsOf(ctx, caller),
  }),
  route('PUT /v1/secrets/{name}', {
    operation: 'set_secret',
    tag: 'secrets',
    summary: 'Set a secret, or give it another value',
    description:
      'Steps name it as `{{ secrets.NAME }}` in their input. Its value is stored encrypted by `PAYLOAD_KEYS`, and no answer shows it. Capstan puts it into the request to an instance that may have it, and nowhere else. The new value holds for every call that begins afterwards.',
    scope: 'secrets:write',
    params: SecretPath,
    body: json(SecretRequest),
    responses: { 200: Secret },
    errors: ['encryption_required', 'limit_reached'],
    result: (ctx, { caller, params, body }) => setSecret(ctx, caller, { ...params, ...body }),
  }),
  route('DELETE /v1/secrets/{name}', {
    operation: 'delete_secret',
    tag: 'secrets',
    summary: 'Delete a secret',
    description: 'A step that names it fails from then on, with `secret_unknown`.',
    scope: 'secrets:write',
    params: SecretPath,
    responses: { 204: 'empty' },
    errors: ['not_found'],
    handle: async (ctx, { caller, params }) => {
      await deleteSecret(ctx, caller, params.name);
      return { status: 204 };
    },
  }),
];
