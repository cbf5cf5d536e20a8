/** The HTTP API as one request listener. What it needs comes in; nothing is kept between requests. */
import type { RequestListener } from 'node:http';
import Koa from 'koa';
import type { Logger } from 'pino';
import { noTelemetry, type Telemetry } from '../core/telemetry/telemetry.ts';
import type { Services } from '../services/services.ts';
import { createConsoleFiles } from './console-files.ts';
import type { ApiConfig } from './limits.ts';
import { discardRest } from './middleware/discard-rest.ts';
import { createDraining } from './middleware/draining.ts';
import { notFound } from './middleware/not-found.ts';
import { observeRequest } from './middleware/observe-request.ts';
import { problem } from './middleware/problem.ts';
import { refuseAmbiguity } from './middleware/refuse-ambiguity.ts';
import { requestId } from './middleware/request-id.ts';
import { requestLog } from './middleware/request-log.ts';
import type { RequestState } from './middleware/request-state.ts';
import { securityHeaders } from './middleware/security-headers.ts';
import { mountRoutes } from './mount.ts';
import { createRateLimits } from './rate-limits.ts';
import { watchRevocations } from './revocation.ts';
import { createRoutes } from './routes/routes.ts';

export interface AppDependencies {
  readonly services: Services;
  readonly config: ApiConfig;
  readonly logger: Logger;
  /** Where the console is built, or will be; without it there is none. */
  readonly consoleFolder?: string;
  /** Default: nobody is told. */
  readonly telemetry?: Telemetry;
}

export interface App {
  readonly handle: RequestListener;
  /** From now on answers close their connections and open streams and waits end. */
  readonly drain: () => void;
}

export function createApp({
  services,
  config,
  logger,
  consoleFolder,
  telemetry = noTelemetry,
}: AppDependencies): App {
  const draining = createDraining();
  const { closing } = draining;
  watchRevocations(draining, services.access);
  const console = consoleFolder === undefined ? undefined : createConsoleFiles(consoleFolder);
  const routes = createRoutes(services, { config, closing, console });
  const limits = createRateLimits(config, () => performance.now());
  const router = mountRoutes(routes, { access: services.access, config, limits, closing });
  const koa = new Koa<RequestState>();
  koa.on('error', (err: unknown) => logger.debug({ err }, 'answer cut off'));
  koa
    .use(requestId)
    .use(observeRequest(telemetry))
    .use(requestLog(logger))
    .use(draining.middleware)
    .use(discardRest)
    .use(securityHeaders)
    .use(problem(logger))
    .use(refuseAmbiguity)
    .use(router.routes())
    .use(notFound)
    .use(router.allowedMethods());
  return { handle: koa.callback(), drain: draining.begin };
}
