/** The specification's resources: registration, cost model, spec, health, exec; and a listed instance. */
import { z } from 'zod';
import { findTakesFault, hostFields, RegisteredHost } from './host.ts';
import { heartbeatSeconds, longestAffinityKey, mostResident, unreadableKey } from './limits.ts';
import {
  Affinity,
  CapabilityName,
  Instant,
  Json,
  JsonObject,
  listOf,
  Tag,
  Tags,
  VersionText,
} from './primitives.ts';

const rate = z.number().min(0).max(10_000);

const CostExpression = z.string().min(1).max(4_096);

const price = {
  type: z.enum(['per_second', 'per_call', 'free']),
  rate_usd: rate,
  worst_case: CostExpression.optional().meta({
    description:
      'An expression over `input`, in one `{{ }}`: the most that this call costs, USD. The router reserves it where it is below the price by the rate. With `per_call` it needs `settle: reported`.',
  }),
  expected: CostExpression.optional().meta({
    description: 'An expression over `input`, in one `{{ }}`: the likely cost of this call, USD.',
  }),
  price_source: z.string().min(1).max(300).optional().meta({
    description: 'Where its prices are from, such as a price book with its date. Decisions show it.',
  }),
  start: CostExpression.optional().meta({
    description:
      'An expression over `input`, in one `{{ }}`: the most that this call costs before the first token of its answer, USD. Default: 0.',
  }),
  per_token: CostExpression.optional().meta({
    description:
      'An expression over `input`, in one `{{ }}`: the most that each token of the answer adds, USD. With it, and `stops` in the spec, a call holds a part of its worst case that grows with the answer. It needs `worst_case`.',
  }),
};

/** USD per unit of `type`; the rate of `free` is 0. */
export const CostModel = z
  .object({
    ...price,
    notes: z.string().max(2_000).optional(),
  })
  .refine((cost) => cost.type !== 'free' || cost.rate_usd === 0, {
    path: ['rate_usd'],
    error: 'a free capability has rate_usd 0',
  })
  .meta({
    id: 'CostModel',
    anyOf: [{ properties: { type: { not: { const: 'free' } } } }, { properties: { rate_usd: { const: 0 } } }],
  });
export type CostModel = z.infer<typeof CostModel>;

/** What is wrong with the address of an instance, in words that do not repeat it; null: nothing. */
export function findAddressFault(text: string): string | null {
  if (!URL.canParse(text)) return 'is no URL';
  const { protocol, username, password } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:')
    return `is ${protocol}, only http: and https: are allowed`;
  if (username !== '' || password !== '' || /^\w+:\/*[^/\\]*@/.test(text))
    return 'has a user or password, which is not allowed';
  return /[?#]/.test(text) ? 'has a query or fragment, which is not allowed' : null;
}

/** An address of an instance that its operator writes. */
export const InstanceAddress = z
  .string()
  .refine((text) => findAddressFault(text) === null, {
    error: ({ input }) => findAddressFault(String(input)) ?? '',
  })
  .meta({ format: 'uri', pattern: '^https?://' });

const HttpUrl = z
  .url({ protocol: /^https?$/ })
  .max(2_048)
  .meta({
    description:
      'http or https without user, query and fragment, where `ALLOWED_CIDRS` lets instances be; those of one instance have one origin.',
  });

export const WarmUp = z
  .object({
    input: JsonObject,
    timeout_s: z.number().int().min(1).max(3_600).default(60),
  })
  .meta({
    id: 'WarmUp',
    description:
      'A call that the router makes before others: after each registration, a restart and the end of a drain. Until it succeeds, the instance is `warming` and a last resort. Only for an instance whose rate is 0, because no budget is charged for it.',
  });
export type WarmUp = z.infer<typeof WarmUp>;

/** Why no project would pay for the warm-up; null: it is free, or there is none. */
export function findWarmUpFault({
  warm_up,
  cost_model: { rate_usd },
}: {
  readonly warm_up?: unknown;
  readonly cost_model: CostModel;
}): string | null {
  return warm_up === undefined || rate_usd === 0
    ? null
    : `is for instances whose rate is 0, because no project pays for that call; the rate is ${rate_usd} USD`;
}

/** Who may call an instance besides the project that it belongs to. */
export const SharedWith = z
  .union([z.literal('all'), z.array(z.string().min(1).max(128)).max(100)], {
    error: 'is "all", or a list of at most 100 ids of projects',
  })
  .meta({ id: 'SharedWith' });
export type SharedWith = z.infer<typeof SharedWith>;

const ResidentKey = z
  .string()
  .min(1)
  .max(longestAffinityKey)
  .refine((key) => !unreadableKey.test(key), {
    error: ({ input }) =>
      `is ${JSON.stringify(input)}; a text without control characters, line breaks or a bracket at its begin is allowed`,
  })
  .meta({ not: { pattern: unreadableKey.source } });

/** Keys of what an instance has loaded: models, LoRAs, voices. */
const ResidentKeys = z.array(ResidentKey).max(mostResident).meta({
  id: 'ResidentKeys',
  description:
    'What it has loaded, as keys of the `affinity` of its spec. A wrong report costs time: it never decides whether a call is allowed.',
});

/** Of a report that may be wrong: a list that is none counts as absent. */
export const ReportedKeys = ResidentKeys.optional().catch(undefined);

/** Body of `POST /v1/capabilities`. Unknown fields are ignored. */
export const Registration = z
  .object({
    name: CapabilityName,
    version: VersionText,
    endpoint: HttpUrl,
    spec_url: HttpUrl,
    health_url: HttpUrl,
    cost_model: CostModel,
    tags: Tags,
    /** Calls that the instance runs in parallel. */
    max_concurrency: z.number().int().min(1).max(10_000).default(1),
    /** Calls that wait inside the instance, including ours. */
    queue_depth: z.number().int().min(0).max(1_000_000).optional(),
    /** reported: a success costs the `cost_usd` of its output, at most its price by the rate. */
    settle: z.enum(['computed', 'reported']).default('computed'),
    warm_up: WarmUp.optional(),
    /** How many keys it holds loaded at once. Default: as many as it reports, else 1. */
    max_resident: z.number().int().min(1).max(mostResident).optional(),
    resident: ResidentKeys.optional(),
    shared_with: SharedWith.optional().meta({
      description:
        'The other projects that it serves. Absent: as before; a new instance serves the project of its key alone.',
    }),
    ...hostFields,
  })
  .superRefine((registration, { addIssue }) => {
    const fault = findTakesFault(registration);
    if (fault !== null) addIssue({ code: 'custom', path: ['takes'], message: fault });
  })
  .meta({ id: 'Registration' });
export type Registration = z.infer<typeof Registration>;

export const HeartbeatRequest = z
  .object({
    name: CapabilityName.optional().meta({ description: 'That of the path, if given.' }),
    endpoint: HttpUrl,
    queue_depth: z.number().int().min(0).max(1_000_000).optional(),
    resident: ReportedKeys,
  })
  .meta({ id: 'HeartbeatRequest' });
export type HeartbeatRequest = z.infer<typeof HeartbeatRequest>;

export const HeartbeatAnswer = z
  .strictObject({
    state: z.string(),
    revived: z.boolean(),
    adopted: z.boolean().optional(),
    heartbeat_interval_s: z.literal(heartbeatSeconds),
  })
  .meta({ id: 'HeartbeatAnswer' });
export type HeartbeatAnswer = z.infer<typeof HeartbeatAnswer>;

export const DeregisterRequest = z
  .object({
    name: CapabilityName.optional().meta({ description: 'That of the path, if given.' }),
    endpoint: HttpUrl,
    /** The number of the registration to remove; after a newer one, the request is stale. */
    generation: z.number().int().min(1).optional(),
  })
  .meta({ id: 'DeregisterRequest' });
export type DeregisterRequest = z.infer<typeof DeregisterRequest>;
export const DeregisterAnswer = z
  .strictObject({ state: z.string(), stale: z.boolean() })
  .meta({ id: 'DeregisterAnswer' });
export type DeregisterAnswer = z.infer<typeof DeregisterAnswer>;

/** Body of `POST /v1/capabilities/{name}/undrain` and `…/warm`. */
export const EndpointRequest = z.strictObject({ endpoint: HttpUrl }).meta({ id: 'EndpointRequest' });
export type EndpointRequest = z.infer<typeof EndpointRequest>;

/** Body of `POST /v1/capabilities/{name}/drain`. */
export const DrainRequest = z
  .strictObject({
    endpoint: HttpUrl,
    reason: z.string().min(1).max(1_000).optional(),
    until: Instant.optional().meta({
      description: 'When the drain ends. Without it, only `undrain` ends the drain.',
    }),
  })
  .meta({ id: 'DrainRequest' });
export type DrainRequest = z.infer<typeof DrainRequest>;

/** Body of `PUT /v1/capabilities/{name}/sharing`. */
export const SharingRequest = z
  .strictObject({
    shared_with: SharedWith,
    endpoint: HttpUrl.optional().meta({ description: 'Absent: all instances of the project of that name.' }),
  })
  .meta({ id: 'SharingRequest' });
export type SharingRequest = z.infer<typeof SharingRequest>;

/**
 * How an instance answers later. held: an accepted call keeps its slot until it is answered. freed: the instance has
 * handed it on, and the slot is free for the next call.
 */
const AnswersLater = z
  .object({ slot: z.enum(['held', 'freed']).default('held') })
  .meta({ id: 'AnswersLater' });

/** Answer of `GET /spec`. */
export const CapabilitySpec = z
  .object({
    name: CapabilityName,
    version: VersionText,
    description: z.string().max(10_000),
    input: JsonObject,
    output: JsonObject,
    cost_model: z.object(price),
    /** Equal inputs, with files of equal bytes, give equivalent results. Our optional addition. */
    deterministic: z.boolean().optional(),
    /** The protocols of models that the instance speaks itself. Our optional addition. */
    protocols: z.array(z.string().min(1).max(64)).max(16).optional(),
    /**
     * A closed connection ends the work and its cost within a second, and the stream shows its use. Our optional
     * addition.
     */
    stops: z.boolean().optional(),
    /** Calls may be answered later, at the address in `X-Callback-Url`. Our optional addition. */
    async: AnswersLater.optional(),
    /** Decides what a call needs loaded. Our optional addition. */
    affinity: Affinity.optional(),
  })
  .meta({ id: 'CapabilitySpec' });
export type CapabilitySpec = z.infer<typeof CapabilitySpec>;

const Tokens = z.number().min(0).optional().catch(undefined);

function shortText(most: number) {
  return z
    .string()
    .transform((text) => text.slice(0, most))
    .nullish()
    .catch(undefined);
}

const longestMore = 8_192;

/** The refusal of the provider behind an instance, in the provider's own words. Longer texts are cut. */
export const ProviderError = z
  .object({
    status: z.number().int().min(400).max(599).meta({ description: "The provider's HTTP status." }),
    code: shortText(200).meta({ description: 'Such as `context_length_exceeded`.' }),
    type: shortText(200).meta({ description: 'Such as `invalid_request_error`.' }),
    message: shortText(4_096),
    param: shortText(200).meta({ description: 'The field of the request that is wrong.' }),
    more: JsonObject.refine((more) => JSON.stringify(more).length <= longestMore)
      .optional()
      .catch(undefined)
      .meta({ description: 'Other fields of the error, such as `details`, with at most 8,192 characters.' }),
  })
  .meta({ id: 'ProviderError' });
export type ProviderError = z.infer<typeof ProviderError>;

/**
 * Optional fields of an error answer of `POST /exec`, beside the specification's `ok` and `error`. A field that is wrong
 * counts as absent.
 */
export const FailureReport = z
  .object({
    cost_usd: z.number().min(0).optional().catch(undefined).meta({
      description: 'What the failed call cost, USD. Read with `settle: reported`.',
    }),
    cost_unknown: z.literal(true).optional().catch(undefined).meta({
      description:
        'The failed call has done work, and nothing reports its cost: it costs its reservation, as an estimate.',
    }),
    usage: z.object({ input_tokens: Tokens, output_tokens: Tokens }).optional().catch(undefined),
    provider: ProviderError.optional().catch(undefined),
  })
  .meta({ id: 'FailureReport' });
export type FailureReport = z.infer<typeof FailureReport>;

/** Answer of `GET /health`. `queue_depth` and `resident` are our optional additions. */
export const Health = z
  .object({
    status: z.string(),
    name: CapabilityName,
    version: VersionText,
    uptime_ms: z.number().min(0),
    queue_depth: z.number().int().min(0).optional(),
    resident: ReportedKeys,
  })
  .meta({ id: 'Health' });
export type Health = z.infer<typeof Health>;

export const InstanceState = z
  .enum(['up', 'warming', 'suspect', 'down', 'evicted', 'quarantined', 'draining', 'deregistered'])
  .meta({ id: 'InstanceState' });
export type InstanceState = z.infer<typeof InstanceState>;

/**
 * Three states are derived: `draining` (deregistered with open calls, or drained by a person), `warming` (up, and its
 * warm-up call has not succeeded yet) and `evicted` (down for long).
 */
export type StoredState = Exclude<InstanceState, 'draining' | 'warming' | 'evicted'>;

/** The state that the router acts on. */
export type RoutedState = Exclude<InstanceState, 'evicted'>;

/** open: no calls until `until`. half_open: one trial call is allowed. */
export const Breaker = z
  .strictObject({ state: z.enum(['closed', 'open', 'half_open']), until: Instant.nullable() })
  .meta({ id: 'Breaker' });
export type Breaker = z.infer<typeof Breaker>;

const Overruns = z.strictObject({ total: z.number().int(), last_at: Instant }).meta({ id: 'Overruns' });

/** A person's decision that an instance gets no new calls. Heartbeats and registrations do not end it. */
export const Drain = z
  .strictObject({
    /** The key or person. */
    by: z.string(),
    reason: z.string().optional(),
    /** The host of the instance is drained, and the instance with it. */
    with_host: z.literal(true).optional(),
    since: Instant,
    until: Instant.nullable(),
  })
  .meta({ id: 'Drain' });

/** A registered instance as the registry shows it. */
export const Instance = z
  .strictObject({
    name: CapabilityName,
    version: VersionText,
    endpoint: z.string(),
    /** The project that it belongs to. */
    owner_project: z.string(),
    /** The other projects that it serves. A project that does not own it sees at most itself. */
    shared_with: SharedWith,
    spec_url: z.string(),
    health_url: z.string(),
    cost_model: CostModel,
    tags: z.array(Tag),
    max_concurrency: z.number().int(),
    /** The machine whose slots its calls take, as the instance registered it; absent: none. */
    host: RegisteredHost.optional(),
    /** The slots of the host that a call takes. */
    takes: z.number().int().optional(),
    state: InstanceState,
    /** The reason for quarantined, down, suspect or warming; absent when up. */
    reason: z.string().optional(),
    generation: z.number().int(),
    in_flight: z.number().int(),
    queue_depth: z.number().int().nullable(),
    /** Moving average of successful calls; null before the first. */
    duration_ms: z.number().nullable(),
    /** The success that the router expects of the next call: at most 0.9, which it assumes before the first one. */
    success_rate: z.number(),
    /** Recent calls, by their ends; older ones weigh less. */
    recent_calls: z.strictObject({ succeeded: z.number(), failed: z.number() }),
    breaker: Breaker,
    /** Absent: it is not drained. */
    drain: Drain.optional(),
    settle: z.enum(['computed', 'reported']),
    /** The protocols of models that it speaks itself; absent: none. */
    protocols: z.array(z.string()).optional(),
    /** A closed connection ends its work; absent: it does not. */
    stops: z.literal(true).optional(),
    /** It may answer calls later; absent: it does not. */
    async: z.strictObject({ slot: z.enum(['held', 'freed']) }).optional(),
    /** The key of what a call needs loaded; absent: nothing. */
    affinity: z.string().optional(),
    /** Keys that it has loaded, the latest first. Only its own project sees them. */
    resident: z.array(z.string()).optional(),
    max_resident: z.number().int().optional(),
    /** Calls that cost more than the declared worst case; absent without any. */
    overruns: Overruns.optional(),
    spec_digest: z.string().nullable(),
    registered_at: Instant,
    last_heartbeat_at: Instant,
    /** The time at which it becomes suspect without a heartbeat. */
    expires_at: Instant,
  })
  .meta({ id: 'Instance' });
export type Instance = z.infer<typeof Instance>;
export const InstanceList = listOf(Instance).meta({ id: 'InstanceList' });

/** Body of `PUT /v1/publishers/{name}`. */
export const PublisherRequest = z
  .strictObject({
    projects: z
      .array(z.string().min(1).max(128))
      .min(1)
      .max(100)
      .meta({ description: 'Ids of projects that exist.' }),
  })
  .meta({ id: 'PublisherRequest' });

/** The projects that may share instances of a name. */
export const Publisher = z
  .strictObject({ name: CapabilityName, projects: z.array(z.string()), updated_at: Instant })
  .meta({ id: 'Publisher' });
export type Publisher = z.infer<typeof Publisher>;
export const PublisherList = listOf(Publisher).meta({ id: 'PublisherList' });

export const CapabilitySummary = z
  .strictObject({
    name: CapabilityName,
    versions: z.array(z.string()),
    description: z.string().nullable(),
    /** The one in use, else the latest, with `include=spec`; absent: no instance that serves the project has returned one. */
    spec: CapabilitySpec.optional(),
    instances: z.array(Instance),
  })
  .meta({ id: 'CapabilitySummary' });
export type CapabilitySummary = z.infer<typeof CapabilitySummary>;

export const CapabilityList = listOf(CapabilitySummary).meta({ id: 'CapabilityList' });

/** A keyword of a spec's schema that the router does not enforce, because it needs a pattern that runs in linear time. */
export const NotEnforced = z
  .strictObject({
    schema: z.enum(['input', 'output']),
    /** JSON Pointer to the keyword, or to the pattern in `patternProperties`. */
    pointer: z.string(),
    keyword: z.string(),
    reason: z.string(),
  })
  .meta({ id: 'NotEnforced' });
export type NotEnforced = z.infer<typeof NotEnforced>;

export const CapabilityDetail = z
  .strictObject({
    name: CapabilityName,
    specs: z.array(
      z.strictObject({
        digest: z.string(),
        spec: CapabilitySpec,
        /** Absent when the router enforces all of both schemas. */
        not_enforced: z.array(NotEnforced).optional(),
      }),
    ),
    instances: z.array(Instance),
  })
  .meta({ id: 'CapabilityDetail' });
export type CapabilityDetail = z.infer<typeof CapabilityDetail>;

export const CallsSummaryQuery = z.strictObject({
  /** Default: a day before `until`. */
  since: Instant.optional(),
  /** Default: now. */
  until: Instant.optional(),
});
export type CallsSummaryQuery = z.infer<typeof CallsSummaryQuery>;

/** Answer of `GET /v1/calls/summary`: the project's completed calls by capability. */
export const CallsSummary = z
  .strictObject({
    items: z.array(
      z.strictObject({
        name: CapabilityName,
        calls: z.number().int(),
        succeeded: z.number().int(),
        /** Of successful calls; null without any. */
        p50_ms: z.number().nullable(),
        p95_ms: z.number().nullable(),
        /** The error of the newest failed call. */
        last_error: z.strictObject({ at: Instant, code: z.string(), message: z.string() }).nullable(),
      }),
    ),
  })
  .meta({ id: 'CallsSummary' });
export type CallsSummary = z.infer<typeof CallsSummary>;

/** Body of `POST /v1/capabilities/{name}/check`. */
export const CheckRequest = z
  .strictObject({
    input: Json,
    /** A version, or a range such as `^1.2`. */
    version: VersionText.optional(),
    /** Tags that the instance must have, all of them. */
    tags: Tags.default([]),
  })
  .meta({ id: 'CheckRequest' });
export type CheckRequest = z.infer<typeof CheckRequest>;
