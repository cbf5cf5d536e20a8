/** Signing in with a browser. */
import { z } from 'zod';
import { KeyScope } from './access.ts';
import { Instant } from './primitives.ts';

/** Body of `POST /v1/session`: a key, or the code of a login link. */
export const SessionRequest = z
  .union([
    z.strictObject({ key: z.string().max(256), code: z.undefined().optional() }),
    z.strictObject({ code: z.string().max(256), key: z.undefined().optional() }),
  ])
  .meta({
    id: 'SessionRequest',
    override: {
      type: 'object',
      properties: { key: { type: 'string' }, code: { type: 'string' } },
      description: 'Either key, or the code of a login link.',
    },
  });
export type SessionRequest = z.infer<typeof SessionRequest>;

/** Who has signed in. */
export const BrowserSession = z
  .strictObject({
    key_id: z.string(),
    /** Of the key. */
    name: z.string(),
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
