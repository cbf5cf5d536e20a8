/** Roles, each a named set of scopes: for the groups of a sign-in, and for keys. */
import type { KeyScope } from './access.ts';

const viewerScopes = [
  'capability:read',
  'pipeline:read',
  'run:read',
  'media:read',
  'skill:read',
  'cost:read',
] as const satisfies readonly KeyScope[];

/** Named sets of scopes. */
export const roleScopes = {
  viewer: viewerScopes,
  reviewer: [...viewerScopes, 'review:decide'],
  editor: [
    'capability:read',
    'capability:call',
    'pipeline:read',
    'pipeline:write',
    'run:read',
    'run:write',
    'media:read',
    'media:write',
    'escalate',
    'skill:read',
    'skill:write',
    'review:decide',
    'cost:read',
  ],
  admin: ['admin'],
} as const satisfies Record<string, readonly KeyScope[]>;
