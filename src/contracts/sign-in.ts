/** Signing in: at an OpenID provider, with what its groups may do here, and with a browser. */
import { z } from 'zod';
import { KeyScope } from './access.ts';
import { Instant, ListQuery, listOf } from './primitives.ts';

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

/**
 * Body of `POST /v1/session`: a key, or the code of a login link. `replace`: the code may sign in a browser that is
 * signed in as somebody else.
 */
export const SessionRequest = z
  .union([
    z.strictObject({ key: z.string().max(256), code: z.undefined().optional() }),
    z.strictObject({
      code: z.string().max(256),
      key: z.undefined().optional(),
      replace: z.boolean().optional(),
    }),
  ])
  .meta({
    id: 'SessionRequest',
    override: {
      type: 'object',
      properties: { key: { type: 'string' }, code: { type: 'string' }, replace: { type: 'boolean' } },
      description:
        'Either key, or the code of a login link. With replace, the code signs in a browser that is signed in as another key; without it that is refused (409).',
    },
  });
export type SessionRequest = z.infer<typeof SessionRequest>;

/** Who has signed in. */
export const BrowserSession = z
  .strictObject({
    key_id: z.string(),
    /** Of the key, or of the person. */
    name: z.string(),
    /** Null: a key, or who signed in by one. */
    person: z.strictObject({ email: z.string().nullable() }).nullable(),
    /** In the project of the request. */
    scopes: z.array(KeyScope),
    projects: z.array(z.strictObject({ project_id: z.string(), name: z.string(), timezone: z.string() })),
    /** Of Capstan. */
    version: z.string(),
    temporal_ui_url: z.string().nullable(),
  })
  .meta({ id: 'Session' });
export type BrowserSession = z.infer<typeof BrowserSession>;

/** Signs a browser in as the key that asked for it, once. */
export const LoginLink = z.strictObject({ url: z.string(), expires_at: Instant }).meta({ id: 'LoginLink' });
export type LoginLink = z.infer<typeof LoginLink>;

/** A browser that is signed in. */
const SessionEntry = z
  .strictObject({
    session_id: z.string(),
    /** The key, or the person. */
    key_id: z.string(),
    name: z.string(),
    email: z.string().nullable(),
    opened_at: Instant,
    expires_at: Instant,
    /** When the provider last said that the person may stay; null: it is not asked. */
    checked_at: Instant.nullable(),
  })
  .meta({ id: 'SessionEntry' });
export const SessionList = listOf(SessionEntry).meta({ id: 'SessionList' });
export type SessionList = z.infer<typeof SessionList>;

const Who = z.string().min(1).max(256);

/** `user`: the id of a person or key, an e-mail address, or the subject at the provider. */
export const SessionQuery = ListQuery.extend({ user: Who.optional() }).strict();
export type SessionQuery = z.infer<typeof SessionQuery>;
export const SessionRevocation = z.strictObject({ user: Who }).meta({ id: 'SessionRevocation' });
export const SessionsRevoked = z.strictObject({ revoked: z.number().int() }).meta({ id: 'SessionsRevoked' });

/** Where the browser goes on to sign out of the provider too. */
export const SessionClosed = z.strictObject({ provider_url: z.string() }).meta({ id: 'SessionClosed' });
export type SessionClosed = z.infer<typeof SessionClosed>;
