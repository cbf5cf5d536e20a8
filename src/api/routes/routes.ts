import type { Services } from '../../services/services.ts';
import type { ConsoleFiles } from '../console-files.ts';
import type { ApiConfig } from '../limits.ts';
import type { Route } from '../route.ts';
import { accessRoutes } from './access.ts';
import { auditRoutes } from './audit.ts';
import { cacheRoutes } from './cache.ts';
import { callRoutes } from './calls.ts';
import { capabilityRoutes } from './capabilities.ts';
import { consoleRoutes } from './console.ts';
import { docsRoutes } from './docs.ts';
import { documentRoutes } from './documents.ts';
import { escalationRoutes } from './escalation.ts';
import { graphRoutes } from './graphs.ts';
import { jobRoutes } from './jobs.ts';
import { mediaRoutes } from './media.ts';
import { moneyRoutes } from './money.ts';
import { pipelineRoutes } from './pipelines.ts';
import { planRoutes } from './plans.ts';
import { publisherRoutes } from './publishers.ts';
import { reviewRoutes } from './reviews.ts';
import { runControlRoutes } from './run-control.ts';
import { runEventRoutes } from './run-events.ts';
import { runPictureRoutes } from './run-pictures.ts';
import { runRoutes } from './runs.ts';
import { scheduleRoutes } from './schedules.ts';
import { serviceRoutes } from './service.ts';
import { sessionRoutes } from './session.ts';
import { sessionAdminRoutes } from './sessions.ts';
import { signInRoutes } from './sign-in.ts';
import { skillRoutes } from './skills.ts';
import { streamRoutes } from './stream.ts';
import { uploadRoutes } from './uploads.ts';
import { webhookRoutes } from './webhooks.ts';

/** Every route of the API. All but the pages for people are in the OpenAPI document. */
export function createRoutes(
  services: Services,
  options: { config: ApiConfig; closing: AbortSignal; console?: ConsoleFiles | undefined },
): Route[] {
  const documented = [
    ...capabilityRoutes(services),
    ...publisherRoutes(services),
    ...callRoutes(services),
    ...pipelineRoutes(services),
    ...graphRoutes(services),
    ...planRoutes(services, options.config),
    ...jobRoutes(services),
    ...mediaRoutes(services, options.config),
    ...uploadRoutes(services),
    ...runRoutes(services, options.config),
    ...runPictureRoutes(services),
    ...runControlRoutes(services),
    ...runEventRoutes(services),
    ...cacheRoutes(services),
    ...streamRoutes(services),
    ...scheduleRoutes(services),
    ...escalationRoutes(services),
    ...reviewRoutes(services),
    ...skillRoutes(services),
    ...moneyRoutes(services),
    ...sessionRoutes(services, options.config),
    ...signInRoutes(services, options.config),
    ...sessionAdminRoutes(services),
    ...accessRoutes(services),
    ...auditRoutes(services),
    ...webhookRoutes(services),
    ...serviceRoutes(services, options),
  ];
  return [
    ...documented,
    ...documentRoutes(documented, options.config),
    ...docsRoutes(),
    ...consoleRoutes(options.console),
  ];
}
