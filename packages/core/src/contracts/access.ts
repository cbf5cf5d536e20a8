/** Projects, API keys and their scopes, and the audit log. */
import { z } from 'zod';
import { CallOnBudget, StepOnBudget } from './decision.ts';
import { erasureCounted, showCount } from './limits.ts';
import { Instant, JsonObject, ListQuery, listOf, Timezone, Usd } from './primitives.ts';

/** The scopes that routes require. `admin` includes all except `operator`, which covers what all projects share. */
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
    'content:read',
    'skill:read',
    'skill:write',
    'review:decide',
    'cost:read',
    'budget:write',
    'secrets:write',
    'admin',
    'operator',
  ])
  .meta({ id: 'Scope' });
export type Scope = z.infer<typeof Scope>;

/** The rights that a key may hold for one capability or pipeline, or for those with a common prefix. */
export const NamedScope = z.enum(['capability:register', 'capability:call', 'run:write']);
export type NamedScope = z.infer<typeof NamedScope>;

/** The scopes that a key holds: a scope, or a right to some capabilities or pipelines alone. */
export const KeyScope = z
  .union([Scope, z.templateLiteral([NamedScope, ':', z.string().regex(/^[A-Za-z0-9_.-]{1,128}\*?$/)])])
  .meta({
    id: 'KeyScope',
    description:
      'A scope, or `capability:register`, `capability:call` or `run:write` with `:NAME` or `:PREFIX*`, for some names alone. `run:write:NAME` starts runs of that stored pipeline, and nothing else.',
  });
export type KeyScope = z.infer<typeof KeyScope>;

export const ProjectRequest = z
  .strictObject({
    name: z.string().min(1).max(128),
    timezone: Timezone.default('UTC'),
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
    strict: z.boolean().meta({ description: 'Requests that a model would not get whole are refused.' }),
    content_days: z.number().int().nullable().meta({
      description: 'For how many days the contents of calls are kept; null: they are not.',
    }),
    on_budget: StepOnBudget.nullable().meta({
      description: 'The end of calls whose budgets have no more room; null: the defaults.',
    }),
    created_at: Instant,
  })
  .meta({ id: 'Project' });
export type Project = z.infer<typeof Project>;
/** What is absent stays. */
export const ProjectSettings = z
  .strictObject({
    strict: z.boolean().optional().meta({
      description:
        'Refuses a request of which a model would not get every field, as `X-Capstan-Strict: true` does.',
    }),
    content_days: z.number().int().min(1).max(365).nullable().optional().meta({
      description:
        'Keeps the contents of calls for so many days, for keys with the scope `content:read`. null: keeps none, and deletes those that there are.',
    }),
    on_budget: StepOnBudget.nullable().optional().meta({
      description:
        'The end of calls whose budgets have no more room, where call, step and key name none. `pause` concerns steps alone. Null: the defaults.',
    }),
    timezone: Timezone.optional().meta({
      description:
        'The zone of its days from now on. Calls keep the day that they were charged to. A date that has begun in the new zone counts on with its spending. Schedules have zones of their own.',
    }),
  })
  .refine((settings) => Object.keys(settings).length > 0, { error: 'name at least one setting' })
  .meta({ id: 'ProjectSettings', minProperties: 1 });
export type ProjectSettings = z.infer<typeof ProjectSettings>;
export const ProjectList = listOf(Project).meta({ id: 'ProjectList' });

/** The progress of a project's erasure. */
export const Erasure = z
  .strictObject({
    /** The project's name in ledger and audit log after the erasure; null: not requested. */
    pseudonym: z.string().nullable(),
    state: z.enum(['none', 'erasing', 'erased']),
    requested_at: Instant.nullable(),
    finished_at: Instant.nullable(),
    /** Rows by table, and media files, deleted so far. */
    deleted: z.record(z.string(), z.number().int()),
    left: z.record(z.string(), z.number().int()).meta({
      description: `Rows by table that it has, or has still, with \`open_run\` beside \`run\`; each counted up to ${showCount(erasureCounted)}`,
    }),
  })
  .meta({ id: 'Erasure' });
export type Erasure = z.infer<typeof Erasure>;

const PerMinute = z.number().int().min(1).max(1_000_000_000);

export const KeyRequest = z
  .strictObject({
    name: z.string().min(1).max(128),
    projects: z.array(z.string()).min(1).max(100),
    scopes: z.array(KeyScope).min(1).max(100),
    /** Not later than the expiry of the creating key, which is the default. */
    expires_at: Instant.optional(),
    requests_per_minute: PerMinute.optional().meta({
      description:
        'The most requests of the key in a minute, without heartbeats. Default: the limits of every key.',
    }),
    tokens_per_minute: PerMinute.optional().meta({
      description: 'The most tokens of its direct calls in a minute, by the usage that models report.',
    }),
    on_budget: CallOnBudget.optional().meta({
      description:
        'The end of its direct calls whose budgets have no more room, where the call names none. Default: that of the project.',
    }),
  })
  .meta({ id: 'KeyRequest' });
export type KeyRequest = z.infer<typeof KeyRequest>;

export const RotationRequest = z
  .strictObject({
    /** How long the former secret remains valid; default a day, at most 30 days. */
    overlap_s: z.number().int().min(0).max(2_592_000).default(86_400),
  })
  .meta({ id: 'RotationRequest' });

/** The only answer with the key itself. */
export const KeyCreated = z.strictObject({ key_id: z.string(), key: z.string() }).meta({ id: 'KeyCreated' });
export type KeyCreated = z.infer<typeof KeyCreated>;

/** The effects of a revocation, and what continues. */
export const KeyRevoked = z
  .strictObject({
    key_ids: z
      .array(z.string())
      .meta({ description: 'The keys that this request revoked: the key and the keys it created.' }),
    going_on: z
      .strictObject({
        webhooks: z.array(
          z.strictObject({ webhook_id: z.string(), project_id: z.string(), url: z.string() }),
        ),
        hooks: z.array(z.strictObject({ hook_id: z.string(), project_id: z.string(), name: z.string() })),
        schedules: z.array(
          z.strictObject({ schedule_id: z.string(), project_id: z.string(), name: z.string() }),
        ),
      })
      .meta({
        description:
          'Objects of these keys in the projects of the calling key that continue until you delete them; the first thousand of each kind.',
      }),
  })
  .meta({ id: 'KeyRevoked' });
export type KeyRevoked = z.infer<typeof KeyRevoked>;

export const Key = z
  .strictObject({
    key_id: z.string(),
    name: z.string(),
    /** Only projects that the caller holds too. */
    projects: z.array(z.string()),
    scopes: z.array(KeyScope),
    requests_per_minute: z.number().int().nullable(),
    tokens_per_minute: z.number().int().nullable(),
    on_budget: CallOnBudget.nullable(),
    /** The creating key; null: a first start. */
    created_by: z.string().nullable(),
    expires_at: Instant.nullable(),
    revoked_at: Instant.nullable(),
    created_at: Instant,
  })
  .meta({ id: 'Key' });
export type Key = z.infer<typeof Key>;
export const KeyList = listOf(Key).meta({ id: 'KeyList' });

// Actions on things that outlive a run, with their actors. Entries are added, never changed.

export const AuditEntry = z
  .strictObject({
    entry_id: z.string(),
    at: Instant,
    /** A key, a person (`user:…`), an escalation, or a part of Capstan. */
    actor: z.string(),
    /** `skill.retired` */
    action: z.string(),
    /** The id of the changed object. */
    subject: z.string(),
    data: JsonObject,
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof AuditEntry>;
export const AuditList = listOf(AuditEntry).meta({ id: 'AuditList' });

export const AuditQuery = ListQuery.extend({
  subject: z
    .string()
    .regex(/^[!-~]{1,128}$/, { error: 'an id has 1 to 128 visible ASCII characters' })
    .optional(),
  from: Instant.optional().meta({ description: 'From this moment on.' }),
  to: Instant.optional().meta({ description: 'Up to this moment, without it.' }),
}).strict();
export type AuditQuery = z.infer<typeof AuditQuery>;
