/** Wires the services behind the API, and sign-in if a provider is configured. */
import type { Logger } from 'pino';
import { createOpenIdProvider } from '../clients/openid-provider.ts';
import { readTemporalAddress } from '../clients/temporal/connection.ts';
import { createWebhookSender } from '../clients/webhook-sender.ts';
import type { Config } from '../config.ts';
import { noTelemetry, type Telemetry } from '../core/telemetry/telemetry.ts';
import { connectDatabase } from '../db/connect.ts';
import { createPersonChecks } from '../use-cases/access/person-session.ts';
import { createSignIn, readSignInSettings, type SignIn } from '../use-cases/access/sign-in.ts';
import { createVerifiedKeys } from '../use-cases/access/verified-keys.ts';
import { createAnswerKeeper } from '../parts/calls/answer-keeper.ts';
import { createAliasBook } from '../use-cases/calls/model-names.ts';
import { createKeyRenewer, createOpenCalls } from '../parts/calls/open-calls.ts';
import type { ServerCtx } from '../context.ts';
import { type Outbox, settleDeliveries } from '../parts/delivery/deliveries.ts';
import { createAdviceCache } from '../parts/cache/advice-cache.ts';
import { createHealthQuestions, databaseMs } from '../parts/health.ts';
import { createStartMarks } from '../use-cases/runs/delivery.ts';
import { createEventFeed } from '../parts/feeds/event-feed.ts';
import { createStepSizes } from '../use-cases/runs/run-view.ts';
import { createAskStanding } from '../use-cases/schedules/schedule-view.ts';
import { createStreamFeed } from '../parts/feeds/stream-feed.ts';
import type { WebPlaces } from '../parts/web-links.ts';
import {
  consoleUrlOf,
  createFoundation,
  createTemporal,
  type Foundation,
  type Temporal,
} from './foundation.ts';
import { createKeeping } from './maintenance.ts';

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
  readonly foundation: Foundation;
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
function createRunParts({ logger, foundation: { ctx }, temporal }: Base) {
  const { db } = ctx;
  const stepSizes = createStepSizes();
  const events = createEventFeed({ db, logger });
  const frames = createStreamFeed({ db, stepSizes, logger });
  return {
    parts: { stepSizes, events, frames, standing: createAskStanding(temporal.schedules) },
    stop: (): void => {
      events.stop();
      frames.stop();
    },
  };
}

/** Makes the parts that hold the open calls of this process. */
function createCallParts({ logger, foundation: { ctx } }: Base) {
  const { db, config } = ctx;
  const answerKeeper = createAnswerKeeper({ db, logger, config });
  const [openCalls, keyRenewer] = [createOpenCalls(), createKeyRenewer({ db, logger })];
  return {
    parts: {
      openCalls,
      keyRenewer,
      answerKeeper,
      aliases: createAliasBook(db),
      adviceCache: createAdviceCache({ db, keyRenewer }),
    },
    close: async (): Promise<void> => {
      await openCalls.close();
      keyRenewer.stop();
      await answerKeeper.settled();
    },
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
function connectAside({ DATABASE_URL, DATABASE_HISTORY_POOL }: Config): Pick<Base, 'healthDb' | 'historyDb'> {
  return {
    healthDb: connectDatabase(DATABASE_URL, 1, databaseMs),
    historyDb: connectDatabase(DATABASE_URL, DATABASE_HISTORY_POOL),
  };
}

function createServerCtx(base: Base, signIn: SignIn | null) {
  const { healthDb, temporal } = base;
  const runs = createRunParts(base);
  const calls = createCallParts(base);
  const ctx: ServerCtx = {
    ...base,
    ...base.foundation.ctx,
    ...runs.parts,
    directMedia: base.foundation.directMedia,
    ...calls.parts,
    signIn,
    verifiedKeys: createVerifiedKeys(),
    health: createHealthQuestions({ healthDb, workflows: temporal.workflows }, () => performance.now()),
    web: webPlaces(base),
  };
  const close = async (): Promise<void> => {
    await calls.close();
    runs.stop();
  };
  return { ctx, close };
}

/** Makes the context of the API. */
export async function createServerRuntime(
  config: Config,
  { logger, publicUrl, telemetry = noTelemetry }: ServerTools,
) {
  const foundation = await createFoundation(config, logger, telemetry);
  const { db, guard } = foundation.ctx;
  const temporal = createTemporal(config);
  await awaitTemporal(temporal, logger);
  const consoleUrl = (): string => consoleUrlOf(config, publicUrl());
  const webhookSender = createWebhookSender(guard);
  const outbox: Outbox = new Map();
  const tools = { logger, outbox, markStart: createStartMarks(db), webhookSender };
  const signIn = await configureSignIn(config);
  const personChecks = signIn === null ? null : createPersonChecks({ db, logger }, signIn);
  const dbs = connectAside(config);
  const base = { config, foundation, temporal, ...dbs, ...tools, publicUrl, consoleUrl };
  const { ctx, close } = createServerCtx(base, signIn);
  const keeping = createKeeping(ctx, personChecks);
  await foundation.start();
  keeping.start();
  return {
    ctx,
    close: async (): Promise<void> => {
      foundation.finish();
      await close();
      await keeping.stop();
      await personChecks?.settled();
      await webhookSender.close();
      await settleDeliveries(ctx);
      await temporal.close();
      await Promise.all(Object.values(dbs).map((aside) => aside.destroy()));
      await foundation.close();
    },
  };
}
