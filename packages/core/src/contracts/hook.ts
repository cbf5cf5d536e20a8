/** Hooks: requests from outside that start runs, signed by their sender, and the log of what became of each. */
import { z } from 'zod';
import {
  Instant,
  Json,
  JsonObject,
  Labels,
  listOf,
  PipelineName,
  Priority,
  Usd,
  VersionText,
} from './primitives.ts';
import { notBoth } from './rules.ts';

/**
 * How a request proves its sender. github: `X-Hub-Signature-256`. standard: Standard Webhooks, also with the names of
 * Svix. slack: `X-Slack-Signature`. bearer: `Authorization: Bearer SECRET`.
 */
export const HookSignature = z.enum(['github', 'standard', 'slack', 'bearer']).meta({ id: 'HookSignature' });
export type HookSignature = z.infer<typeof HookSignature>;

const Secret = z
  .string()
  .regex(/^[!-~]{16,256}$/, { error: 'a secret has 16 to 256 visible ASCII characters' })
  .meta({
    description:
      'The secret that the sender has. Default: a new one, for senders that accept any. Slack gives the signing secret of an app.',
  });

const settings = {
  pipeline: PipelineName,
  version: VersionText.optional(),
  /** Instead of a version; resolved for every run. Default: latest. */
  alias: PipelineName.optional(),
  signature: HookSignature,
  job: z
    .union([z.string().max(65_536), JsonObject])
    .default('{{ body }}')
    .meta({
      description: 'The template of the job. It reads `body` and `headers`, and gives an object.',
    }),
  filter: z.string().min(1).max(65_536).optional().meta({
    description: 'A condition over `body` and `headers`. If it is false, the delivery starts no run.',
  }),
  key: z.string().min(1).max(65_536).optional().meta({
    description:
      'A template. Deliveries with the same key within 24 hours start one run. Default: the id that the sender gives the delivery. A null counts as no key.',
  }),
  priority: Priority.optional(),
  budget_ceiling_usd: Usd.optional(),
  labels: Labels.optional(),
  enabled: z.boolean().default(true),
};

const oneChoice = notBoth('alias', 'version');

/** Body of `PUT /v1/hooks/{name}`. */
export const HookSettings = z
  .strictObject(settings)
  .check(oneChoice.check)
  .meta({ id: 'HookSettings', ...oneChoice.schema });
export type HookSettings = z.infer<typeof HookSettings>;

/** Body of `POST /v1/hooks`. */
export const HookRequest = z
  .strictObject({ name: PipelineName, secret: Secret.optional(), ...settings })
  .check(oneChoice.check)
  .meta({ id: 'HookRequest', ...oneChoice.schema });
export type HookRequest = z.infer<typeof HookRequest>;

/** Body of `POST /v1/hooks/{name}/rotate`. */
export const HookRotation = z
  .strictObject({
    secret: Secret.optional(),
    /** How long the former secret remains valid. */
    overlap_s: z.number().int().min(0).max(2_592_000).default(86_400),
  })
  .meta({ id: 'HookRotation' });
export type HookRotation = z.infer<typeof HookRotation>;

const hook = z.strictObject({
  hook_id: z.string(),
  name: z.string(),
  ...settings,
  /** Where its deliveries are sent: a path, behind the address of the server if that is configured. */
  url: z.string(),
  /** Requests that were refused because they proved no sender. */
  refused: z.strictObject({ count: z.int(), at: Instant, reason: z.string() }).nullable(),
  /** Until then the former secret works too; null: there is none. */
  former_until: Instant.nullable(),
  /** The creating key. */
  created_by: z.string(),
  created_at: Instant,
  updated_at: Instant,
});

export const Hook = hook.meta({ id: 'Hook' });
export type Hook = z.infer<typeof Hook>;
export const HookList = listOf(Hook).meta({ id: 'HookList' });

/** The only answers with the secret. */
export const HookCreated = hook.extend({ secret: z.string() }).meta({ id: 'HookCreated' });
export type HookCreated = z.infer<typeof HookCreated>;

/**
 * started: it started a run. repeated: an earlier one with its key did. filtered: the filter is false. answered: a
 * check of the address by the sender. failed: its body, or a template, gives no job. refused: the run was refused, as a
 * request for it would be.
 */
export const HookOutcome = z
  .enum(['started', 'repeated', 'filtered', 'answered', 'failed', 'refused'])
  .meta({ id: 'HookOutcome' });
export type HookOutcome = z.infer<typeof HookOutcome>;

const receipt = {
  delivery_id: z.string(),
  outcome: HookOutcome,
  run_id: z.string().nullable(),
  /** Why there is no new run. */
  reason: z.string().nullable(),
};

/** The answer to a delivery. */
export const HookReceipt = z.strictObject(receipt).meta({ id: 'HookReceipt' });
export type HookReceipt = z.infer<typeof HookReceipt>;

/** The same for Slack: a challenge, and a text for the person who sent a command. */
export const HookReply = z
  .union([HookReceipt, z.strictObject({ challenge: z.string() }), z.strictObject({ text: z.string() })])
  .meta({ id: 'HookReply' });
export type HookReply = z.infer<typeof HookReply>;

const logged = z.strictObject({
  ...receipt,
  /** By which equal ones are known. */
  key: z.string().nullable(),
  /** The delivery that a person sent again. */
  replay_of: z.string().nullable(),
  /** Size of the body. */
  bytes: z.int(),
  received_at: Instant,
});

export const HookDelivery = logged.meta({ id: 'HookDelivery' });
export type HookDelivery = z.infer<typeof HookDelivery>;
export const HookDeliveryList = listOf(HookDelivery).meta({ id: 'HookDeliveryList' });

export const HookDeliveryDetail = logged
  .extend({
    /** Without those that hold secrets or signatures. */
    headers: z.record(z.string(), z.string()),
    /** Null: it has more than 64 KiB, or repeats another delivery. */
    body: Json,
  })
  .meta({ id: 'HookDeliveryDetail' });
export type HookDeliveryDetail = z.infer<typeof HookDeliveryDetail>;
