/** Sign-in: at an OpenID provider, whose groups map to scopes; and browser sessions. */
import { z } from 'zod';
import { KeyScope } from './access.ts';
import { Instant, ListQuery, listOf } from './primitives.ts';
import { roleScopes } from './roles.ts';

/** The scopes of a group's members, and their projects: ids, names, or `*` for all. */
const GroupRule = z
  .strictObject({
    role: z.enum(Object.keys(roleScopes) as [keyof typeof roleScopes]).optional(),
    scopes: z.array(KeyScope).max(100).default([]),
    projects: z.array(z.string().min(1).max(128)).min(1).max(100),
  })
  .refine(({ role, scopes }) => role !== undefined || scopes.length > 0, {
    error: 'names neither a role nor scopes; one of them is required',
  });

/** Group → its rule. A person in several groups has, in each project, the union of their scopes. */
export const GroupRules = z
  .record(z.string().min(1), GroupRule)
  .refine((rules) => Object.keys(rules).length > 0, { error: 'names no group; at least one is required' });
export type GroupRules = z.infer<typeof GroupRules>;

/** Scopes in projects; `*` is all projects, including future ones. */
export interface Grant {
  readonly scopes: readonly KeyScope[];
  readonly projects: readonly string[];
}

/** Why a sign-in was refused. */
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

/** A refused sign-in. `detail` is for the log. */
export interface SignInRefused {
  readonly refused: SignInRefusal;
  readonly detail: string;
}

/** The ways to sign in with a browser, besides a key. */
export const SignInOffer = z
  .strictObject({
    /** Null: no provider is configured. */
    oidc: z.strictObject({ name: z.string(), url: z.string() }).nullable(),
  })
  .meta({ id: 'SignInOffer' });
export type SignInOffer = z.infer<typeof SignInOffer>;

/**
 * Body of `POST /v1/session`: a key, or the code of a login link. `replace`: the code may replace a session of another
 * user.
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

/** The user of a browser session. */
export const BrowserSession = z
  .strictObject({
    key_id: z.string(),
    /** The name of the key or person. */
    name: z.string(),
    /** Null: a key, or a session that a key created. */
    person: z.strictObject({ email: z.string().nullable() }).nullable(),
    /** The scopes in the project of the request. */
    scopes: z.array(KeyScope),
    projects: z.array(z.strictObject({ project_id: z.string(), name: z.string(), timezone: z.string() })),
    /** The version of Capstan. */
    version: z.string(),
    temporal_ui_url: z.string().nullable(),
  })
  .meta({ id: 'Session' });
export type BrowserSession = z.infer<typeof BrowserSession>;

/** Signs a browser in, once, as the key that requested the link. */
export const LoginLink = z.strictObject({ url: z.string(), expires_at: Instant }).meta({ id: 'LoginLink' });
export type LoginLink = z.infer<typeof LoginLink>;

/** A browser session in a list. */
const SessionEntry = z
  .strictObject({
    session_id: z.string(),
    /** The key, or the person. */
    key_id: z.string(),
    name: z.string(),
    email: z.string().nullable(),
    opened_at: Instant,
    expires_at: Instant,
    /** When the provider last confirmed the person; null: the provider is not asked. */
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

/** The address at which the browser also signs out from the provider. */
export const SessionClosed = z.strictObject({ provider_url: z.string() }).meta({ id: 'SessionClosed' });
export type SessionClosed = z.infer<typeof SessionClosed>;
