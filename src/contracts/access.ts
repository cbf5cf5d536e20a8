/** Projects, API keys and what a key may do. */
import { z } from 'zod';
import { Instant, listOf, Usd } from './primitives.ts';

export const Scope = z
  .enum([
    'capability:register',
    'capability:call',
    'capability:read',
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
    'budget:write',
    'admin',
  ])
  .meta({ id: 'Scope' });
export type Scope = z.infer<typeof Scope>;

export const ProjectRequest = z
  .strictObject({
    name: z.string().min(1).max(128),
    timezone: z.string().max(64).default('UTC'),
    daily_limit_usd: Usd.default(0),
  })
  .meta({ id: 'ProjectRequest' });
export type ProjectRequest = z.infer<typeof ProjectRequest>;

export const Project = z
  .strictObject({
    project_id: z.string(),
    name: z.string(),
    timezone: z.string(),
    daily_limit_usd: z.number(),
    created_at: Instant,
  })
  .meta({ id: 'Project' });
export type Project = z.infer<typeof Project>;
export const ProjectList = listOf(Project).meta({ id: 'ProjectList' });

export const KeyRequest = z
  .strictObject({
    name: z.string().min(1).max(128),
    projects: z.array(z.string()).min(1).max(100),
    scopes: z.array(Scope).min(1),
    expires_at: Instant.optional(),
  })
  .meta({ id: 'KeyRequest' });
export type KeyRequest = z.infer<typeof KeyRequest>;

/** The key itself is shown once, here. */
export const KeyCreated = z.strictObject({ key_id: z.string(), key: z.string() }).meta({ id: 'KeyCreated' });
export type KeyCreated = z.infer<typeof KeyCreated>;

export const Key = z
  .strictObject({
    key_id: z.string(),
    name: z.string(),
    projects: z.array(z.string()),
    scopes: z.array(Scope),
    expires_at: Instant.nullable(),
    revoked_at: Instant.nullable(),
    created_at: Instant,
  })
  .meta({ id: 'Key' });
export type Key = z.infer<typeof Key>;
export const KeyList = listOf(Key).meta({ id: 'KeyList' });
