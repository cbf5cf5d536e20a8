/** Wires the services behind the API, with sign-in where a provider is configured. */
import type { Logger } from 'pino';
import { createOpenIdProvider } from '../clients/openid-provider.ts';
import { readTemporalAddress } from '../clients/temporal/connection.ts';
import { createWebhookSender, type WebhookSender } from '../clients/webhook-sender.ts';
import type { Config } from '../config.ts';
import { noTelemetry, type Telemetry } from '../core/telemetry/telemetry.ts';
import { connectDatabase, type Db } from '../db/connect.ts';
import { createAccessService } from '../services/access/access-service.ts';
import { createAuditService } from '../services/access/audit-service.ts';
import { createSignInService, readSignInSettings, type SignInService } from '../services/access/sign-in.ts';
import { createCacheService } from '../services/cache/cache-service.ts';
import { createCallService } from '../services/calls/call-service.ts';
import type { ServerCtx } from '../services/context.ts';
import {
  type DeliveryCtx,
  deliverSoon,
  type Outbox,
  settleDeliveries,
} from '../services/delivery/deliveries.ts';
import { createErasureService } from '../services/erasure/erasure-service.ts';
import { createEscalationService } from '../services/escalation/escalation-service.ts';
import { ladderStarts } from '../services/escalation/ladder/delivery.ts';
import { createHealthService, databaseMs } from '../services/health-service.ts';
import { createJobService } from '../services/jobs.ts';
import { createMoneyService } from '../services/money/money-service.ts';
import { createAliasService } from '../services/pipelines/pipeline-service.ts';
import { createPlanService } from '../services/plans/plan-service.ts';
import { createPublisherService } from '../services/registry/publisher-service.ts';
import { createCheckDecision, createInputChecks } from '../services/reviews/input.ts';
import { createReviewService } from '../services/reviews/review-service.ts';
import { createDecisionService } from '../services/routing/decisions.ts';
import { createStartMarks, type MarkStart } from '../services/runs/delivery.ts';
import { createEventFeed } from '../services/runs/events.ts';
import { createRerunRun } from '../services/runs/rerun.ts';
import { createRunService } from '../services/runs/run-service.ts';
import { createSubmitRun, createSubmitRuns } from '../services/runs/submission.ts';
import { createScheduleService } from '../services/schedules/schedule-service.ts';
import { createSkillService } from '../services/skills/skill-service.ts';
import { createRunFrames } from '../services/stream/frames.ts';
import { createStreamFeed } from '../services/stream/stream-feed.ts';
import { createStreamService } from '../services/stream/stream-service.ts';
import { createWebLinks } from '../services/web-links.ts';
import { createWebhookService } from '../services/webhooks/webhook-service.ts';
import {
  consoleUrlOf,
  createFoundation,
  createIntake,
  createMedia,
  createRouter,
  createTemporal,
  type Foundation,
  type MediaParts,
  type Router,
  type Temporal,
} from './foundation.ts';
import { createKeeping } from './maintenance.ts';

interface SignInTools {
  readonly db: Db;
  readonly logger: Logger;
  readonly publicUrl: () => string;
}

/** Null: no provider is configured. @throws Error for a configuration that is wrong */
async function createSignIn(config: Config, tools: SignInTools): Promise<SignInService | null> {
  const settings = await readSignInSettings(config);
  if (settings === null) return null;
  const { issuer, clientId, clientSecret, rules, name } = settings;
  const { OIDC_SCOPES: scopes, OIDC_GROUPS_CLAIM: groupsClaim, OIDC_RECHECK_S: recheckS } = config;
  const provider = createOpenIdProvider({ issuer, clientId, clientSecret, scopes, groupsClaim });
  return createSignInService({ ...tools, provider, rules, name, clientSecret, recheckS });
}

interface Base {
  readonly config: Config;
  readonly logger: Logger;
  readonly foundation: Foundation;
  readonly router: Router;
  readonly temporal: Temporal;
  readonly media: MediaParts;
  readonly outbox: Outbox;
  readonly markStart: MarkStart;
  readonly healthDb: Db;
  /** For lists, sums and exports of what has been: calls never wait for them. */
  readonly historyDb: Db;
  /** The API's address, known once it listens. */
  readonly webhookSender: WebhookSender;
  readonly publicUrl: () => string;
  readonly consoleUrl: () => string;
}

function linksTo({ TEMPORAL_UI_URL }: Config, { namespace }: Temporal, consoleUrl: () => string) {
  return createWebLinks({ temporalUiUrl: TEMPORAL_UI_URL, consoleUrl, namespace });
}

function deliveryCtxOf({ foundation, ...base }: Base): DeliveryCtx {
  return { ...base, db: foundation.db };
}

/** Runs, and what becomes one: definitions, plans, schedules. */
function createRunServices(base: Base) {
  const { config, logger, foundation, temporal, consoleUrl } = base;
  const { library: media, direct: directMedia } = base.media;
  const { db, vetter } = foundation;
  const { fleet, validator } = base.router;
  const events = createEventFeed({ db, logger });
  const readRunFrames = createRunFrames(db);
  const stream = createStreamFeed({ db, readRunFrames, logger });
  const intake = createIntake(foundation, { fleet, vet: vetter.vet });
  const { pipelines } = intake;
  const { schedules } = temporal;
  const runs = createRunService({
    ...foundation,
    historyDb: base.historyDb,
    deliveryCtx: deliveryCtxOf(base),
    feed: events,
    web: linksTo(config, temporal, consoleUrl),
    submitRun: createSubmitRun(intake),
    submitRuns: createSubmitRuns(intake),
    reruns: createRerunRun({ ...intake, media }),
  });
  return {
    parts: { definitions: intake.definitions, events, frames: stream },
    services: {
      pipelines,
      plans: createPlanService({ ...intake, fleet, validator, media }),
      aliases: createAliasService(db),
      jobs: createJobService({ db, media, ownMedia: foundation.ownMedia }),
      media,
      directMedia,
      runs,
      streams: createStreamService({ db, feed: stream, readRunFrames }),
      schedules: createScheduleService({ ...intake, schedules, deliveryCtx: deliveryCtxOf(base) }),
    },
    stop: (): void => {
      events.stop();
      stream.stop();
    },
  };
}

/** Routed calls that no run makes, and the ladder's questions and answers. */
function createCallServices(base: Base) {
  const { config, logger, foundation, router, temporal, historyDb, consoleUrl } = base;
  const deliveryCtx = deliveryCtxOf(base);
  const { db, contexts, vetter } = foundation;
  const { fleet, validator, callCapability } = router;
  const calls = createCallService({ db, fleet, callCapability, logger });
  const escalations = createEscalationService({
    db,
    contexts,
    fleet,
    validator,
    callCapability,
    logger,
    vet: vetter.vet,
    startSoon: (escalation_id) => void deliverSoon(deliveryCtx, ladderStarts, { escalation_id }),
    telemetry: foundation.telemetry,
    web: linksTo(config, temporal, consoleUrl),
  });
  const checkDecision = createCheckDecision({ db, fleet, validator, contexts });
  return {
    services: {
      calls,
      decisions: createDecisionService({ db, historyDb, fleet, validator }),
      inputChecks: createInputChecks({ db, fleet, validator }),
      escalations,
      reviews: createReviewService({ db, checkDecision, deliveryCtx }),
    },
    close: async (): Promise<void> => {
      await Promise.all([calls.close(), escalations.close()]);
    },
  };
}

/** Who may come in, what it cost, and how the process fares. */
function createOfficeServices({
  config,
  foundation: { db, registry, policy },
  webhookSender: sender,
  temporal: { workflows },
  healthDb,
  historyDb,
  publicUrl,
}: Base) {
  const keyEnvironment = config.CAPSTAN_MODE === 'production' ? 'live' : 'dev';
  return {
    access: createAccessService(db, { keyEnvironment, publicUrl }),
    erasures: createErasureService(db),
    audit: createAuditService(historyDb),
    registry,
    publishers: createPublisherService(db),
    skills: createSkillService(db),
    cache: createCacheService(db),
    webhooks: createWebhookService({ db, policy, sender }),
    money: createMoneyService(db, historyDb),
    health: createHealthService({ ownDb: healthDb, workflows, now: () => performance.now() }),
  };
}

interface ServerTools {
  readonly logger: Logger;
  /** The API's address, known once it listens. */
  readonly publicUrl: () => string;
  /** Default: nobody is told. */
  readonly telemetry?: Telemetry;
}

/** Where it does not answer in time, the server begins without it. */
async function awaitTemporal(temporal: Temporal, logger: Logger): Promise<void> {
  const words = 'Temporal does not answer: runs are taken, and begin when it does';
  const warn = (err: unknown): void => logger.warn({ err, address: readTemporalAddress() }, words);
  await temporal.answers().catch(warn);
}

/** Connections for what must not wait behind requests, and for what requests must not wait behind. */
function connectAside({ DATABASE_URL, DATABASE_HISTORY_POOL }: Config): Pick<Base, 'healthDb' | 'historyDb'> {
  return {
    healthDb: connectDatabase(DATABASE_URL, 1, databaseMs),
    historyDb: connectDatabase(DATABASE_URL, DATABASE_HISTORY_POOL),
  };
}

function createServices(base: Base, signIn: SignInService | null) {
  const { config, temporal, consoleUrl } = base;
  const runs = createRunServices(base);
  const calls = createCallServices(base);
  const ctx: ServerCtx = {
    ...base,
    ...base.foundation,
    ...base.router,
    ...runs.parts,
    ...createOfficeServices(base),
    ...runs.services,
    ...calls.services,
    signIn,
    web: linksTo(config, temporal, consoleUrl),
  };
  const close = async (): Promise<void> => {
    await calls.close();
    runs.stop();
  };
  return { ctx, close };
}

/** The context of the API. */
export async function createServerRuntime(
  config: Config,
  { logger, publicUrl, telemetry = noTelemetry }: ServerTools,
) {
  const foundation = await createFoundation(config, logger, telemetry);
  const { db } = foundation;
  const router = createRouter(config, logger, foundation);
  const temporal = createTemporal(config);
  await awaitTemporal(temporal, logger);
  const consoleUrl = (): string => consoleUrlOf(config, publicUrl());
  const webhookSender = createWebhookSender(foundation.guard);
  const media = await createMedia(config, db);
  const outbox: Outbox = new Map();
  const tools = { logger, outbox, markStart: createStartMarks(db), webhookSender };
  const signIn = await createSignIn(config, { db, logger, publicUrl });
  const dbs = connectAside(config);
  const base = { config, foundation, router, temporal, media, ...dbs, ...tools, publicUrl, consoleUrl };
  const { ctx, close } = createServices(base, signIn);
  const keeping = createKeeping(ctx, foundation.registry);
  await router.start();
  keeping.start();
  return {
    ctx,
    close: async (): Promise<void> => {
      router.finish();
      await close();
      await keeping.stop();
      await signIn?.close();
      await webhookSender.close();
      await settleDeliveries(ctx);
      await router.close();
      await temporal.close();
      await Promise.all(Object.values(dbs).map((aside) => aside.destroy()));
      await foundation.close();
    },
  };
}
