/**
 * The only reader of `process.env`. One schema is parser, defaults and documentation: docs/reference/configuration.md
 * is generated from it. The Temporal connection itself is read by its own library (`TEMPORAL_ADDRESS`,
 * `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, TLS and TOML profiles).
 */

import { readFileSync } from 'node:fs';
import { ConfigurationError } from '@capstan/core/errors/start-errors';
import { findLevelFaults } from '@capstan/core/ladder/level-models';
import { engineVersion } from '@capstan/core/workflow-payloads';
import { parseCidr } from '@capstan/guarded-dial/address-policy';
import { z } from 'zod';

function integer(fallback: number, min: number, max: number) {
  return z.coerce.number().int().min(min).max(max).default(fallback);
}

function daysOrNever(fallback: number, least: number) {
  const days = z.coerce.number().int().min(least).max(36_500);
  const error = `allowed are "never" and a number of days from ${least} to 36500`;
  return z.union([z.literal('never'), days], { error }).default(fallback);
}

const privateNetworks = '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7';

const networks = z.string().superRefine((text, context) => {
  for (const network of text.split(',').filter((part) => parseCidr(part) === null)) {
    const message = `"${network.trim()}" is no network; allowed are networks such as 10.0.0.0/8 or fc00::/7, separated by commas`;
    context.addIssue({ code: 'custom', message });
  }
});

const ladderLevels = z.string().superRefine((text, context) => {
  for (const message of findLevelFaults(text)) context.addIssue({ code: 'custom', message });
});

interface Heartbeats {
  readonly HEARTBEAT_INTERVAL_MS?: number | undefined;
  readonly HEARTBEAT_TIMEOUT_MS: number;
}

interface Addresses {
  readonly CAPSTAN_MODE: 'development' | 'production';
  readonly PUBLIC_URL?: string | undefined;
}

/** Links are built with PUBLIC_URL. So is the browser cookie, which requires https. */
function checkPublicUrl({ CAPSTAN_MODE, PUBLIC_URL }: Addresses, context: z.RefinementCtx): void {
  const needed = 'the address at which clients reach the API, as https://capstan.example.com';
  const isUrl = PUBLIC_URL !== undefined && /^https?:\/\//.test(PUBLIC_URL) && URL.canParse(PUBLIC_URL);
  const message =
    PUBLIC_URL === undefined
      ? `is not set; production mode needs ${needed}`
      : `${PUBLIC_URL} is not ${needed}`;
  if (!isUrl && (PUBLIC_URL !== undefined || CAPSTAN_MODE === 'production'))
    context.addIssue({ code: 'custom', path: ['PUBLIC_URL'], message });
}

/** One lost heartbeat must not cost a step its worker, so the timeout spans at least two intervals. */
function checkHeartbeats(
  { HEARTBEAT_INTERVAL_MS: given = 0, HEARTBEAT_TIMEOUT_MS: timeout }: Heartbeats,
  context: z.RefinementCtx,
): void {
  const most = Math.floor(timeout / 2);
  if (given <= most) return;
  const message = `${given} is too long a pause; allowed is at most half of HEARTBEAT_TIMEOUT_MS=${timeout}, that is ${most}`;
  context.addIssue({ code: 'custom', path: ['HEARTBEAT_INTERVAL_MS'], message });
}

/** Of a variable whose empty text could mean none, or a secret that is missing. */
const empty = 'is empty: give it a value, or leave it out';

export const ConfigSchema = z
  .object({
    DATABASE_URL: z.string().meta({ description: 'Postgres connection URL.' }),
    DATABASE_PASSWORD_FILE: z.string().min(1, empty).optional().meta({
      description:
        'File with the password for DATABASE_URL, such as a secret of Docker or Kubernetes. It replaces a password in the URL.',
    }),
    DATABASE_POOL: integer(20, 2, 200).meta({
      description:
        'Connections of a process for its work. A server has further ones: those of DATABASE_HISTORY_POOL, and one for readiness.',
    }),
    DATABASE_HISTORY_POOL: integer(8, 1, 100).meta({
      description:
        'Further connections of a server for lists, sums and exports of what has been, so that calls never wait for them.',
    }),
    API_KEY_FILE: z.string().optional().meta({
      description:
        'The first start writes an admin key to this file (mode 0600). Without it, no key is made.',
    }),
    HOST: z.string().default('127.0.0.1').meta({ description: 'Address the API listens on.' }),
    PORT: integer(7400, 0, 65_535).meta({ description: 'Port the API listens on; 0 picks a free one.' }),
    PUBLIC_URL: z.string().optional().meta({
      description: 'Base URL of the API as clients see it. Production mode needs it.',
    }),
    MEDIA_URL: z.string().default('file://.capstan/media').meta({
      description:
        'Media store: file://DIR, or s3://BUCKET/PREFIX?region=…&endpoint=…&path_style=true with keys where AWS’ SDK looks for them (AWS_ACCESS_KEY_ID, profiles, roles).',
    }),
    MEDIA_REDIRECT: z.enum(['true', 'false']).default('false').meta({
      description:
        'true: clients read and write the bytes of an s3:// store themselves, by URLs that are signed for one file and some hours; they must reach its endpoint.',
    }),
    MEDIA_BYTES_PER_PROJECT: integer(0, 0, Number.MAX_SAFE_INTEGER).meta({
      description:
        'Bytes that the files of a project may have together, announced uploads included; 0 sets no limit. A file that an instance has written past the API counts when it is first looked at.',
    }),
    TASK_QUEUE: z.string().default('capstan').meta({ description: 'Temporal task queue.' }),
    PAYLOAD_KEYS: z.string().min(1, empty).optional().meta({
      description:
        'Keys that encrypt the data in Temporal, and secrets: ID:BASE64 of 32 bytes each, separated by commas, the newest first. Or the path of a file that holds them. Server and worker need the same; see docs/operate/encryption.md.',
    }),
    TEMPORAL_UI_URL: z
      .url()
      .optional()
      .meta({ description: 'Base address of Temporal’s Web UI: links of runs and escalations lead there.' }),
    CONSOLE_URL: z.url().optional().meta({
      description:
        'Base address of a console elsewhere: links of runs and escalations lead there. Default: /ui/ of the API.',
    }),
    LOG_LEVEL: z
      .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
      .default('info')
      .meta({ description: 'Least severe log line that is written.' }),
    CAPSTAN_MODE: z
      .enum(['development', 'production'])
      .default('development')
      .meta({ description: 'production refuses instances on loopback addresses and makes keys named live.' }),
    ALLOWED_CIDRS: networks.default(privateNetworks).meta({
      description:
        'Networks that instances may be in, besides loopback in development mode; 0.0.0.0/0 and ::/0 let public ones in. Link-local, metadata, multicast and own addresses are always refused.',
    }),
    OIDC_ISSUER: z.url().optional().meta({
      description:
        'Issuer of the OpenID provider at which people sign in; with it go OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and OIDC_GROUPS. Production mode demands https.',
    }),
    OIDC_CLIENT_ID: z
      .string()
      .min(1)
      .optional()
      .meta({ description: 'The client ID of Capstan at the provider.' }),
    OIDC_CLIENT_SECRET: z.string().min(1, empty).optional().meta({
      description: 'Its secret there. Another one ends the sessions of people, not those of keys.',
    }),
    OIDC_SCOPES: z.string().default('openid profile email offline_access').meta({
      description:
        'Scopes that Capstan requests. Without the scope for a refresh token (mostly offline_access), Capstan never asks the provider about a session again.',
    }),
    OIDC_GROUPS_CLAIM: z.string().min(1).default('groups').meta({
      description: 'Claim that holds the groups of a person; realm_access.roles is a claim within one.',
    }),
    OIDC_GROUPS: z.string().min(1, empty).optional().meta({
      description:
        'Rights of groups, as JSON or the path of a file that holds it: {"ops": {"role": "admin", "projects": ["*"]}}. See docs/sign-in.md.',
    }),
    OIDC_NAME: z.string().min(1).max(64).optional().meta({
      description: 'Name of the provider on the button. Default: its host.',
    }),
    OIDC_RECHECK_S: integer(60, 0, 86_400).meta({
      description: 'Seconds after which the provider is asked again whether a person may stay; 0 = never.',
    }),
    RATE_LIMITS: z.enum(['on', 'off']).default('on').meta({
      description: 'Whether keys are held to the rates below, each process counting by itself.',
    }),
    RATE_REQUESTS_PER_S: integer(100, 1, 1_000_000).meta({
      description: 'Requests of a key, five times as many at once.',
    }),
    RATE_STARTS_PER_S: integer(200, 1, 1_000_000).meta({
      description: 'Requests of a key that start runs, five times as many at once.',
    }),
    RATE_ESCALATIONS_PER_MIN: integer(60, 1, 1_000_000).meta({
      description: '/execute and /advise of a key.',
    }),
    RATE_HEARTBEATS_PER_S: integer(100, 1, 1_000_000).meta({
      description: 'Registrations, heartbeats and deregistrations of a key, twenty times as many at once.',
    }),
    RATE_SESSIONS_PER_MIN: integer(30, 1, 1_000_000).meta({
      description: 'Sessions of browsers that a key opens.',
    }),
    RATE_WRONG_KEYS_PER_MIN: integer(10, 1, 1_000_000).meta({
      description: 'Wrong keys from one address that are answered 401; further ones are answered 429.',
    }),
    REQUESTS_AT_ONCE: integer(1_000, 1, 1_000_000).meta({
      description:
        'Requests of a key that a process keeps open at once, long calls and `Prefer: wait` among them; further ones are answered 429.',
    }),
    STREAMS_AT_ONCE: integer(200, 1, 1_000_000).meta({
      description: 'Streams of events of a key that a process keeps open at once, counted by themselves.',
    }),
    BODIES_BYTES: integer(67_108_864, 1_048_576, 17_179_869_184).meta({
      description:
        'Memory for bodies that are being received, all together; a key or an address may take a quarter of it, or one body of the largest size.',
    }),
    INSTANCES_PER_PROJECT: integer(1_000, 1, 100_000).meta({
      description: 'Instances that a project may have registered at once; every process keeps all in memory.',
    }),
    OPEN_RUNS_PER_PROJECT: integer(1_000, 1, 1_000_000).meta({
      description:
        'Runs of a project that may be open at once, those counted that steps have started; further ones are answered 429. Requests of the same moment may pass it, by a run for each connection to the database.',
    }),
    KEPT_ANSWER_BYTES: integer(262_144, 1_024, 16_777_216).meta({
      description:
        'Most bytes of an answer that `X-Capstan-Cache` keeps. A larger one is answered with the header `X-Capstan-Not-Kept`.',
    }),
    KEPT_ANSWERS_BYTES_PER_PROJECT: integer(1_073_741_824, 0, Number.MAX_SAFE_INTEGER).meta({
      description:
        'Bytes that the answers of a project may have together which are kept for `X-Capstan-Cache`, and as many for Idempotency-Keys. The oldest go first. 0 sets no limit.',
    }),
    BODY_LIMIT_BYTES: integer(1_048_576, 1_024, 67_108_864).meta({
      description: 'Largest JSON request body.',
    }),
    CHAT_LIMIT_BYTES: integer(8_388_608, 1_024, 67_108_864).meta({
      description: "Largest request in OpenAI's form, with its pictures; never less than BODY_LIMIT_BYTES.",
    }),
    CHAT_MESSAGES: integer(1_000, 1, 10_000).meta({ description: 'Most messages of a chat completion.' }),
    CHAT_TOOLS: integer(1_000, 0, 10_000).meta({ description: 'Most tools of a chat completion.' }),
    DEFINITION_LIMIT_BYTES: integer(8_388_608, 1_024, 67_108_864).meta({
      description: 'Largest pipeline definition.',
    }),
    MEDIA_LIMIT_BYTES: integer(2_147_483_648, 1_024, 1_099_511_627_776).meta({
      description: 'Largest media file.',
    }),
    WORKFLOW_BUNDLE: z.string().optional().meta({
      description:
        'File of a ready workflow bundle of this version, as npm run build writes it. Without it a compiled worker uses the one of its build, and a worker from sources makes one at every start.',
    }),
    ACTIVITY_SLOTS: integer(500, 1, 10_000).meta({ description: 'Steps that one worker runs at once.' }),
    HEARTBEAT_TIMEOUT_MS: integer(30_000, 1_000, 600_000).meta({
      description:
        'Silence after which Temporal gives a step to another worker; that one sends its call again when the lease of the first is over (LEASE_MS).',
    }),
    HEARTBEAT_INTERVAL_MS: z.coerce.number().int().min(100).max(300_000).optional().meta({
      description:
        'Pause between two heartbeats of a step to Temporal, at most half of HEARTBEAT_TIMEOUT_MS. A step notices a cancel at its next heartbeat. Default: 5000, or a third of the timeout if that is less. Temporal Cloud bills each: 30000 there, with a timeout of 90000.',
    }),
    LEASE_MS: integer(30_000, 1_000, 600_000).meta({
      description: 'How long a claim on an instance lives without renewal.',
    }),
    ENGINE_VERSION: integer(engineVersion, 1, engineVersion).meta({
      description:
        'Behaviour of new runs. While old and new processes run side by side: the version of the old ones; then the newest. Runs keep theirs.',
    }),
    HISTORY_EVENTS: integer(4_096, 50, 20_000).meta({
      description:
        'Events after which a run continues in a new Temporal history, as soon as none of its calls is in flight.',
    }),
    TRANSIENT_TEXTS: z.string().default('').meta({
      description:
        'Parts of messages by which instances refuse a call (422) for a reason that passes, with | between them: such a step is retried, not escalated.',
    }),
    LADDER_LEVELS: ladderLevels.default('').meta({
      description:
        'Models of the levels of the ladder, as fast=model.local,top=model.claude. A level that is not named has model.fast, model.capable, model.reasoning or model.top. Set the same for servers and workers.',
    }),
    LIVENESS_MS: integer(4_000, 20, 600_000).meta({
      description:
        'Silence of an open call after which TCP keepalive asks for its machine, 1 s or more; it counts as gone after ten unanswered probes, a second apart. Also the pause between two connects while a part of the request is not acknowledged; after three unanswered ones it counts as gone.',
    }),
    PROBE_TIMEOUT_MS: integer(5_000, 100, 60_000).meta({
      description: 'How long /health or /spec of an instance may take as a whole.',
    }),
    HEADERS_TIMEOUT_MS: integer(10_000, 100, 600_000).meta({
      description: 'How long the headers of a request to the API may take.',
    }),
    SHUTDOWN_GRACE_MS: integer(25_000, 0, 600_000).meta({
      description: 'Time that open requests and calls have after SIGTERM. Capstan then aborts the rest.',
    }),
    METRICS_PORT: z.coerce.number().int().min(0).max(65_535).optional().meta({
      description:
        'Port on which Prometheus finds `GET /metrics` of this process; 0 picks a free one. Without it nothing is counted.',
    }),
    METRICS_HOST: z.string().optional().meta({
      description: 'Address of METRICS_PORT; every client that reaches it may read it. Default: HOST.',
    }),
    OTEL_EXPORTER_OTLP_ENDPOINT: z.string().optional().meta({
      description:
        'Collector that receives the spans, by OTLP over HTTP, as `http://127.0.0.1:4318`. Without it, Capstan makes no spans. The other `OTEL_EXPORTER_OTLP_…`, `OTEL_BSP_…` and `OTEL_TRACES_SAMPLER` variables hold too.',
    }),
    OTEL_SERVICE_NAME: z.string().optional().meta({
      description: 'Name of this process in traces. Default: `capstan-server`, `capstan-worker`.',
    }),
    OTEL_RESOURCE_ATTRIBUTES: z.string().optional().meta({
      description: 'More about this process in traces, as `key=value,key=value`.',
    }),
    RUN_RETENTION_DAYS: daysOrNever(90, 7).meta({
      description:
        'Days for which an ended run is kept, with its steps, attempts, events, escalations, reviews and cached results. The same holds for calls without a run. A job and its files are deleted when it has no run left. With never, Capstan deletes none of them.',
    }),
    CHOICE_RETENTION_DAYS: daysOrNever(30, 2).meta({
      description:
        'Days in which it is kept why an instance was chosen, and from what; no longer than its run. Or never: as long as its run.',
    }),
    LEDGER_RETENTION_DAYS: daysOrNever(2_557, 30).meta({
      description: 'Days in which entries of the ledger and of the audit log are kept (7 years), or never.',
    }),
    PURGE_EXPORT_DIR: z.string().optional().meta({
      description:
        'Folder that takes what the retention deletes as files of JSON lines, before it is deleted. None: no copy.',
    }),
    MAINTENANCE_MS: integer(1_000, 50, 60_000).meta({ description: 'Pause between two maintenance rounds.' }),
  })
  .superRefine(checkHeartbeats)
  .superRefine(checkPublicUrl);

export type Config = z.infer<typeof ConfigSchema>;

const steadyIntervalMs = 5_000;

/** Interval between two heartbeats of a step. */
export function heartbeatIntervalMs({ HEARTBEAT_INTERVAL_MS, HEARTBEAT_TIMEOUT_MS }: Config): number {
  return HEARTBEAT_INTERVAL_MS ?? Math.min(steadyIntervalMs, Math.floor(HEARTBEAT_TIMEOUT_MS / 3));
}

function readPassword(file: string): string {
  const fault = (reason: string) =>
    new ConfigurationError(`configuration: DATABASE_PASSWORD_FILE: ${reason}`);
  try {
    const password = readFileSync(file, 'utf8').trim();
    if (password === '') throw fault(`${file} is empty`);
    return password;
  } catch (cause) {
    throw cause instanceof ConfigurationError
      ? cause
      : fault(cause instanceof Error ? cause.message : `${cause}`);
  }
}

/** @returns the URL with the password of the file, if one is named @throws ConfigurationError when it cannot be read */
export function completeDatabaseUrl(url: string, passwordFile: string | undefined): string {
  if (passwordFile === undefined) return url;
  const password = readPassword(passwordFile);
  if (!URL.canParse(url))
    throw new ConfigurationError(
      'configuration: DATABASE_URL is no URL, so DATABASE_PASSWORD_FILE has no place in it',
    );
  const complete = new URL(url);
  complete.password = encodeURIComponent(password);
  return complete.href;
}

/** @throws ConfigurationError that names every wrong variable, the value seen and the values allowed */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const { success, data, error } = ConfigSchema.safeParse(environment);
  if (!success) throw new ConfigurationError(`configuration: ${z.prettifyError(error)}`);
  return { ...data, DATABASE_URL: completeDatabaseUrl(data.DATABASE_URL, data.DATABASE_PASSWORD_FILE) };
}
