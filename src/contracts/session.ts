/** Signing in with a browser. */
import { z } from 'zod';
import { KeyScope } from './access.ts';
import { Instant, ListQuery, listOf } from './primitives.ts';

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
