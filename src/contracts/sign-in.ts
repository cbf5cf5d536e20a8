/** Signing in at an OpenID provider, and what its groups may do here. */
import { z } from 'zod';
import { KeyScope } from './access.ts';

const viewerScopes = [
  'capability:read',
  'pipeline:read',
  'run:read',
  'media:read',
  'skill:read',
  'cost:read',
] as const satisfies readonly KeyScope[];

/** Scopes that are given together, by name. */
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

/** What the members of a group may do, and in which projects: ids, names, or `*` for all. */
const GroupRule = z
  .strictObject({
    role: z.enum(Object.keys(roleScopes) as [keyof typeof roleScopes]).optional(),
    scopes: z.array(KeyScope).max(100).default([]),
    projects: z.array(z.string().min(1).max(128)).min(1).max(100),
  })
  .refine(({ role, scopes }) => role !== undefined || scopes.length > 0, {
    error: 'says neither role nor scopes: one of them is needed',
  });

/** Group → what it gives. Who is in several has, in each project, what all of them give there. */
export const GroupRules = z
  .record(z.string().min(1), GroupRule)
  .refine((rules) => Object.keys(rules).length > 0, { error: 'names no group, so nobody could sign in' });
export type GroupRules = z.infer<typeof GroupRules>;

/** Scopes in projects; `*` is all of them, those that will be made too. */
export interface Grant {
  readonly scopes: readonly KeyScope[];
  readonly projects: readonly string[];
}

/** Why somebody was not signed in. */
export const SignInRefusal = z.enum([
  'expired',
  'mismatch',
  'used',
  'no_group',
  'revoked',
  'provider_refused',
  'provider_down',
]);
export type SignInRefusal = z.infer<typeof SignInRefusal>;

/** Nobody was signed in. `detail` is for the log. */
export interface SignInRefused {
  readonly refused: SignInRefusal;
  readonly detail: string;
}

/** How a browser may sign in, besides by a key. */
export const SignInOffer = z
  .strictObject({
    /** Null: no provider is configured. */
    oidc: z.strictObject({ name: z.string(), url: z.string() }).nullable(),
  })
  .meta({ id: 'SignInOffer' });
export type SignInOffer = z.infer<typeof SignInOffer>;
