/**
 * What a process works with: its connections, and the parts that keep state of their own. `runtime/` makes one for each
 * process; every function of a service takes it, or the part that it needs, as its first argument. What keeps no state
 * is a function and stands in no context.
 */
import type { Logger } from 'pino';
import type { AddressPolicy } from '../clients/address-policy.ts';
import type { DialGuard } from '../clients/guarded-dial.ts';
import type { RunWorkflows } from '../clients/temporal/run-workflows.ts';
import type { TemporalSchedules } from '../clients/temporal/schedules.ts';
import type { WebhookSender } from '../clients/webhook-sender.ts';
import type { Config } from '../config.ts';
import type { Telemetry } from '../core/telemetry/telemetry.ts';
import type { Db } from '../db/connect.ts';
import type { SchemaVetter } from '../schemas/schema-vetter.ts';
import type { Outbox } from './delivery/deliveries.ts';
import type { FleetPoller } from './fleet/fleet-poller.ts';
import type { OwnMedia } from './jobs.ts';
import type { DirectMedia } from './media/direct-media.ts';
import type { MediaLibrary } from './media/media-library.ts';
import type { SchemaValidator } from './registry/specs.ts';
import type { CallCapability } from './routing/routed-call.ts';
import type { RunContexts } from './run-data/run-context.ts';
import type { StepResults } from './run-data/step-results.ts';
import type { KnownDefinitions } from './runs/definitions.ts';
import type { MarkStart } from './runs/delivery.ts';
import type { EventFeed } from './runs/events.ts';
import type { Services } from './services.ts';
import type { StreamFeed } from './stream/stream-feed.ts';
import type { WebLinks } from './web-links.ts';

/** What server and worker have. */
export interface Ctx {
  readonly config: Config;
  readonly logger: Logger;
  readonly telemetry: Telemetry;
  readonly db: Db;
  /** Which addresses instances and webhooks may have. */
  readonly policy: AddressPolicy;
  /** Connects to those addresses alone. */
  readonly guard: DialGuard;
  /** Checks schemas that strangers wrote, in a thread of its own. */
  readonly vetter: SchemaVetter;
  /** Checks inputs and outputs by the schemas of capabilities. */
  readonly validator: SchemaValidator;
  /** The view of all instances. */
  readonly fleet: FleetPoller;
  readonly callCapability: CallCapability;
  readonly definitions: KnownDefinitions;
  readonly contexts: RunContexts;
  readonly results: StepResults;
  readonly media: MediaLibrary;
  readonly ownMedia: OwnMedia;
}

/** What the server asks of Temporal. */
export interface TemporalParts {
  readonly workflows: RunWorkflows;
  readonly schedules: TemporalSchedules;
  readonly namespace: string;
  /** Id of the key that encrypts new payloads. */
  readonly payloadKey: string;
}

export interface ServerCtx extends Ctx, Services {
  /** For lists, sums and exports: calls never wait for them. */
  readonly historyDb: Db;
  /** One connection, for readiness alone. */
  readonly healthDb: Db;
  readonly temporal: TemporalParts;
  /** What the process delivers to Temporal at the moment. */
  readonly outbox: Outbox;
  /** Marks starts as delivered, all of a moment by one statement. */
  readonly markStart: MarkStart;
  readonly webhookSender: WebhookSender;
  readonly directMedia: DirectMedia;
  readonly media: MediaLibrary;
  /** Wakes those who wait for events of a run. */
  readonly events: EventFeed;
  /** Wakes those who follow a project. */
  readonly frames: StreamFeed;
  readonly web: WebLinks;
  /** The API's address, known once it listens. */
  readonly publicUrl: () => string;
  readonly consoleUrl: () => string;
}
