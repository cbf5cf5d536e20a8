/** Wires the use cases behind the API, and sign-in if a provider is configured. */

import { noTelemetry, type Telemetry } from '@capstan/core/telemetry/telemetry';
import type { Logger } from 'pino';
import { createOpenIdProvider } from '../clients/openid-provider.ts';
import { readTemporalAddress } from '../clients/temporal/connection.ts';
import { createWebhookSender } from '../clients/webhook-sender.ts';
import type { Config } from '../config.ts';
import type { ServerCtx } from '../context.ts';
import { createSignIn, readSignInSettings, type SignIn } from '../parts/access/sign-in.ts';
import { createVerifiedKeys } from '../parts/access/verified-keys.ts';
import { createAdviceCache } from '../parts/cache/advice-cache.ts';
import { createAnswerKeeper } from '../parts/calls/answer-keeper.ts';
import { createKeyRenewer, createOpenCalls } from '../parts/calls/open-calls.ts';
import { type Outbox, settleDeliveries } from '../parts/delivery/deliveries.ts';
import { createAskStanding } from '../parts/delivery/schedule-standing.ts';
import { createStartMarks } from '../parts/delivery/start-marks.ts';
import { createEventFeed } from '../parts/feeds/event-feed.ts';
import { createStreamFeed } from '../parts/feeds/stream-feed.ts';
import { createHealthQuestions, databaseMs } from '../parts/health.ts';
import { createModelRuleBook } from '../parts/model-rules.ts';
import type { Parts } from '../parts/part.ts';
import { createStepSizes } from '../parts/step-sizes.ts';
import type { WebPlaces } from '../parts/web-links.ts';
import { createPersonChecks } from '../use-cases/access/person-session.ts';
import { createRoundReader } from '../use-cases/stream/rounds.ts';
import { addMaintenance } from './maintenance.ts';
import {
  addDatabase,
  consoleUrlOf,
  createSharedContext,
  createTemporal,
  type SharedContext,
  type Temporal,
} from './shared-context.ts';

/** @returns null if no provider is configured @throws Error for a wrong configuration */
async function configureSignIn(config: Config): Promise<SignIn | null> {
  const settings = await readSignInSettings(config);
  if (settings === null) return null;
  const { issuer, clientId, clientSecret, rules, name } = settings;
  const { OIDC_SCOPES: scopes, OIDC_GROUPS_CLAIM: groupsClaim, OIDC_RECHECK_S: recheckS } = config;
  const provider = createOpenIdProvider({ issuer, clientId, clientSecret, scopes, groupsClaim });
  return createSignIn(provider, { rules, name, clientSecret, recheckS });
}

type OwnParts =
  | 'config'
  | 'logger'
  | 'outbox'
  | 'markStart'
  | 'healthDb'
  | 'historyDb'
  | 'webhookSender'
  | 'publicUrl'
  | 'consoleUrl';

/** The parts from which the rest of the server's context is made. */
interface Base extends Pick<ServerCtx, OwnParts> {
  readonly foundation: SharedContext;
  readonly temporal: Temporal;
}

function webPlaces({
  config,
  temporal,
  consoleUrl,
}: Pick<Base, 'config' | 'temporal' | 'consoleUrl'>): WebPlaces {
  return { temporalUiUrl: config.TEMPORAL_UI_URL, consoleUrl, namespace: temporal.namespace };
}

/** Makes the parts that lists and streams of runs use. */
function createRunParts({ logger, foundation: { ctx, parts }, temporal }: Base) {
  const { db } = ctx;
  const stepSizes = createStepSizes();
  const createReader = (now: () => number) => createRoundReader({ db, stepSizes }, now);
  return {
    stepSizes,
    events: parts.add(createEventFeed({ db, logger })),
    frames: parts.add(createStreamFeed({ db, logger, createReader })),
    standing: createAskStanding(temporal.schedules),
  };
}

/** Makes the parts that hold the open calls of this process. */
function createCallParts({ logger, foundation: { ctx, parts, keepKey } }: Base) {
  const { db, config } = ctx;
  const answerKeeper = parts.add(createAnswerKeeper({ db, logger, config }));
  const keyRenewer = parts.add(createKeyRenewer({ db, logger }, keepKey));
  return {
    keyRenewer,
    answerKeeper,
    openCalls: parts.add(createOpenCalls()),
    modelRules: createModelRuleBook(db),
    adviceCache: createAdviceCache({ db, keyRenewer }),
  };
}

interface ServerTools {
  readonly logger: Logger;
  /** The URL of the API, known once it listens. */
  readonly publicUrl: () => string;
  /** Default: no metrics, no traces. */
  readonly telemetry?: Telemetry;
}

/** The server starts without Temporal if Temporal does not answer in time. */
async function awaitTemporal(temporal: Temporal, logger: Logger): Promise<void> {
  const words = 'Temporal does not answer: runs are taken, and begin when it does';
  const warn = (err: unknown): void => logger.warn({ err, address: readTemporalAddress() }, words);
  await temporal.answers().catch(warn);
}

/** Connections that requests cannot delay (health), and connections that cannot delay requests (history). */
function connectAside(
  { DATABASE_URL, DATABASE_HISTORY_POOL }: Config,
  parts: Parts,
): Pick<Base, 'healthDb' | 'historyDb'> {
  return {
    healthDb: addDatabase(parts, DATABASE_URL, 1, databaseMs),
    historyDb: addDatabase(parts, DATABASE_URL, DATABASE_HISTORY_POOL),
  };
}

function createServerCtx(base: Base, signIn: SignIn | null): ServerCtx {
  const { foundation, healthDb, temporal } = base;
  return {
    ...base,
    ...foundation.ctx,
    ...createRunParts(base),
    directMedia: foundation.directMedia,
    ...createCallParts(base),
    signIn,
    verifiedKeys: createVerifiedKeys(),
    health: createHealthQuestions({ healthDb, workflows: temporal.workflows }, () => performance.now()),
    web: webPlaces(base),
  };
}

/** Makes the context of the API. */
export async function createServerRuntime(
  config: Config,
  { logger, publicUrl, telemetry = noTelemetry }: ServerTools,
) {
  const foundation = await createSharedContext(config, logger, telemetry);
  const { parts, ctx: common } = foundation;
  const dbs = connectAside(config, parts);
  const temporal = parts.add(createTemporal(config));
  await awaitTemporal(temporal, logger);
  const consoleUrl = (): string => consoleUrlOf(config, publicUrl());
  const outbox: Outbox = new Map();
  parts.add({ close: () => settleDeliveries({ outbox }) });
  const webhookSender = parts.add(createWebhookSender(common.guard));
  const signIn = await configureSignIn(config);
  const personChecks =
    signIn === null ? null : parts.add(createPersonChecks({ db: common.db, logger }, signIn));
  const markStart = createStartMarks(common.db, temporal.payloadKeys);
  const tools = { logger, outbox, markStart, webhookSender };
  const base = { config, foundation, temporal, ...dbs, ...tools, publicUrl, consoleUrl };
  const ctx = createServerCtx(base, signIn);
  addMaintenance(ctx, parts, personChecks);
  await parts.start();
  return {
    ctx,
    close: async (): Promise<void> => {
      parts.retire(0);
      await parts.close();
    },
  };
}
