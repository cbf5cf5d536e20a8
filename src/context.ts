/**
 * The context of a process: its connections and its parts. `processes/` makes one for each process; every use case takes it,
 * or what it needs of it, as its first argument.
 */

import type { FreezeClock } from '@capstan/core/call/freezes';
import type { FailedStep } from '@capstan/core/ladder/types';
import type { SchemaVetter } from '@capstan/core/schemas/schema-vetter';
import type { Telemetry } from '@capstan/core/telemetry/telemetry';
import type { Advanced, LadderPosition, StepEnd } from '@capstan/core/workflow-payloads';
import type { AddressPolicy } from '@capstan/guarded-dial/address-policy';
import type { DialGuard } from '@capstan/guarded-dial/guarded-dial';
import type { Logger } from 'pino';
import type { CapabilityClient } from './clients/capability-http.ts';
import type { SecretCipher } from './clients/secret-cipher.ts';
import type { WebhookSender } from './clients/webhook-sender.ts';
import type { Config } from './config.ts';
import type { Claim } from './db/attempt/attempt.ts';
import type { Db } from './db/connect.ts';
import type { KeyBuckets } from './parts/access/key-rates.ts';
import type { SignIn } from './parts/access/sign-in.ts';
import type { VerifiedKeys } from './parts/access/verified-keys.ts';
import type { AdviceCache } from './parts/cache/advice-cache.ts';
import type { CachedCalls } from './parts/cache/cached-calls.ts';
import type { AnswerKeeper } from './parts/calls/answer-keeper.ts';
import type { AttemptWriter } from './parts/calls/attempt-writer.ts';
import type { Breakers, HalfOpenProbes } from './parts/calls/breakers.ts';
import type { CallLogWriter } from './parts/calls/call-log.ts';
import type { CallbackAddresses } from './parts/calls/callback-addresses.ts';
import type { CalledOffSteps } from './parts/calls/called-off-steps.ts';
import type { Holds } from './parts/calls/holds.ts';
import type { InFlightSteps } from './parts/calls/in-flight-steps.ts';
import type { KeptContents } from './parts/calls/kept-contents.ts';
import type { KeyRenewer, OpenCalls } from './parts/calls/open-calls.ts';
import type { AttemptSpans } from './parts/calls/routed-call.ts';
import type { SlotLeases } from './parts/calls/slot-leases.ts';
import type { WaitQueue } from './parts/calls/wait-queue.ts';
import type { CheckedDefinitions } from './parts/definitions/definition-facts.ts';
import type { KnownDefinitions } from './parts/definitions/known-definitions.ts';
import type { RunContexts } from './parts/definitions/run-context.ts';
import type { StepResults } from './parts/definitions/step-results.ts';
import type { Outbox, TemporalParts } from './parts/delivery/deliveries.ts';
import type { LeaseRenewer } from './parts/delivery/lease-renewer.ts';
import type { AskStanding } from './parts/delivery/schedule-standing.ts';
import type { MarkStart } from './parts/delivery/start-marks.ts';
import type { EventFeed } from './parts/feeds/event-feed.ts';
import type { StreamFeed } from './parts/feeds/stream-feed.ts';
import type { FleetPoller } from './parts/fleet/fleet-poller.ts';
import type { Probing } from './parts/fleet/probes-in-flight.ts';
import type { ResidencyRecorder } from './parts/fleet/residency-recorder.ts';
import type { CurrentSpecs, SchemaValidator } from './parts/fleet/specs.ts';
import type { SpeedRecorder } from './parts/fleet/speed-recorder.ts';
import type { HealthQuestions } from './parts/health.ts';
import type { DirectMedia } from './parts/media/direct-media.ts';
import type { MediaLibrary } from './parts/media/media-library.ts';
import type { OwnMedia } from './parts/media/own-media.ts';
import type { ModelRuleBook } from './parts/model-rules.ts';
import type { SkillMatcher } from './parts/skill-matcher.ts';
import type { StepSizes } from './parts/step-sizes.ts';
import type { WebPlaces } from './parts/web-links.ts';

/** The parts that server and worker have in common. */
export interface Ctx {
  readonly config: Config;
  readonly logger: Logger;
  readonly telemetry: Telemetry;
  readonly db: Db;
  /** Which addresses instances and webhooks may have. */
  readonly policy: AddressPolicy;
  /** Connects to those addresses alone. */
  readonly guard: DialGuard;
  /** Seals the values of secrets; null: no key is configured. */
  readonly secretCipher: SecretCipher | null;
  /** Checks untrusted schemas in a thread of its own. */
  readonly vetter: SchemaVetter;
  /** Checks inputs and outputs by the schemas of capabilities. */
  readonly validator: SchemaValidator;
  /** Probes of instances that are in flight. */
  readonly probing: Probing;
  /** Knows what a capability takes now. */
  readonly specs: CurrentSpecs;
  /** Finds the skills for a job. */
  readonly skillMatcher: SkillMatcher;
  /** The view of all instances. */
  readonly fleet: FleetPoller;
  /** Sends requests to instances. */
  readonly client: CapabilityClient;
  /** Makes and reads the addresses for answers that come later. */
  readonly callbackAddresses: CallbackAddresses;
  /** Writes claims and ends of attempts, in batches. */
  readonly attemptWriter: AttemptWriter;
  /** Writes what instances log while steps call them, in batches. */
  readonly callLogs: CallLogWriter;
  /** Knows when this process did not turn. */
  readonly freezes: FreezeClock;
  /** Renews the leases of open attempts. */
  readonly leases: LeaseRenewer<Claim>;
  /** Leased slots of free instances. */
  readonly slotLeases: SlotLeases;
  /** Holds that grow with their calls. */
  readonly holds: Holds;
  readonly breakers: Breakers;
  /** Lets one call through to an instance whose breaker is half open. */
  readonly halfOpenProbes: HalfOpenProbes;
  /** Calls that wait for a slot. */
  readonly waitQueue: WaitQueue;
  /** Record how fast instances answer, and what they have loaded. */
  readonly speed: SpeedRecorder;
  readonly residency: ResidencyRecorder;
  readonly attemptSpans: AttemptSpans;
  /** Which projects keep the contents of their calls. */
  readonly keptContents: KeptContents;
  /** By which a refusal of an instance is known to pass. */
  readonly transientTexts: readonly string[];
  /** The tokens that keys have left. */
  readonly keyTokens: KeyBuckets;
  readonly definitions: KnownDefinitions;
  /** The findings of definitions that this process has checked. */
  readonly checked: CheckedDefinitions;
  readonly contexts: RunContexts;
  readonly results: StepResults;
  readonly media: MediaLibrary;
  readonly ownMedia: OwnMedia;
}

/** The worker has these parts as well. */
export interface WorkerCtx extends Ctx {
  /** Steps whose calls this process makes. */
  readonly inFlightSteps: InFlightSteps<StepEnd>;
  /** Steps that may be called off while this process makes their calls. */
  readonly calledOff: CalledOffSteps;
  /** Shares results of equal calls. */
  readonly resultCache: CachedCalls;
  /** Opens the ladder of a failed step; repeated, it returns the same one. It is a field because ladders execute steps. */
  readonly openForStep: (failed: FailedStep) => Promise<LadderPosition>;
  /** Transitions of ladders that this process makes, so that each is made once at a time. */
  readonly transitions: Map<string, Promise<Advanced>>;
}

export interface ServerCtx extends Ctx {
  /** For lists, sums and exports, so that calls never wait for them. */
  readonly historyDb: Db;
  /** One connection, for readiness alone. */
  readonly healthDb: Db;
  /** Asks the database and Temporal at most once a second. */
  readonly health: HealthQuestions;
  /** Holders of keys that this process has verified lately. */
  readonly verifiedKeys: VerifiedKeys;
  /** Null: no provider is configured. */
  readonly signIn: SignIn | null;
  readonly temporal: TemporalParts;
  /** The deliveries to Temporal that are in flight in this process. */
  readonly outbox: Outbox;
  /** Marks starts as delivered: one statement for all starts of a moment. */
  readonly markStart: MarkStart;
  readonly webhookSender: WebhookSender;
  readonly directMedia: DirectMedia;
  /** Open calls with a waiting caller; the server settles them before it stops. */
  readonly openCalls: OpenCalls;
  /** Bounds what is kept of answers. */
  readonly answerKeeper: AnswerKeeper;
  /** Holds the Idempotency-Keys of open calls. */
  readonly keyRenewer: KeyRenewer;
  /** Other names of projects for models. */
  readonly modelRules: ModelRuleBook;
  /** Deduplicates equal requests for advice. */
  readonly adviceCache: AdviceCache;
  /** Asks for the state of a schedule in Temporal, for lists. */
  readonly standing: AskStanding;
  /** The number of steps in the definitions of listed runs. */
  readonly stepSizes: StepSizes;
  /** Wakes the watchers of a run's events. */
  readonly events: EventFeed;
  /** Wakes the watchers of a project. */
  readonly frames: StreamFeed;
  readonly web: WebPlaces;
  /** The API's address, known once it listens. */
  readonly publicUrl: () => string;
  readonly consoleUrl: () => string;
}
